/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "hystartpp.h"
#define CC hystartpp
#define CC_PHASE phase
#include "shim.bpf.h"
