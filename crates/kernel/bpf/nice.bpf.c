/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "nice.h"
#define CC nice
#define CC_UNCOUPLED
#include "shim.bpf.h"
