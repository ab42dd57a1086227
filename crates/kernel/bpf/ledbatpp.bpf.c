/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ledbatpp.h"
#define CC ledbatpp
#define CC_UNCOUPLED
#define CC_PHASE phase
#include "shim.bpf.h"
