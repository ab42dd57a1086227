/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "gleaner.h"
#define CC gleaner
#define CC_UNCOUPLED
#define CC_PHASE phase
#include "shim.bpf.h"
