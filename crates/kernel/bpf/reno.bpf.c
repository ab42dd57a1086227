/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "reno.h"
#define CC reno
#define CC_UNCOUPLED
#include "shim.bpf.h"
