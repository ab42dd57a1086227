/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "balia.h"
#define CC balia
#include "shim.bpf.h"
