/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "lisa.h"
#define CC lisa
#include "shim.bpf.h"
