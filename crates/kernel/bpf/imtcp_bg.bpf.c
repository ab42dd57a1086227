/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "imtcp_bg.h"
#define CC imtcp_bg
#define CC_UNCOUPLED
#define CC_PHASE imtcp.phase
#include "shim.bpf.h"
