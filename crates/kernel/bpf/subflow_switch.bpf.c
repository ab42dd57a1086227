/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "subflow_switch.h"
#define CC subflow_switch
#define CC_PHASE gsam.phase
#include "shim.bpf.h"
