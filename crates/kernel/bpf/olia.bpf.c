/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "olia.h"
#define CC olia
#include "shim.bpf.h"
