/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "imtcp.h"
#define CC imtcp
#define CC_UNCOUPLED
#define CC_PHASE phase
#include "shim.bpf.h"
