/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "adaptive_start.h"
#define CC adaptive_start
#define CC_PHASE phase
#include "shim.bpf.h"
