/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "gsam.h"
#define CC gsam
#define CC_PHASE phase
#include "shim.bpf.h"
