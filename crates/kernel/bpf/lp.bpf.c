/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "lp.h"
#define CC lp
#define CC_UNCOUPLED
#define CC_DELAY
#include "shim.bpf.h"
