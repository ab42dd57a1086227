/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "bbr3.h"
#define CC bbr3
#define CC_UNCOUPLED
#define CC_PHASE phase
#include "shim.bpf.h"
