/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "cubic.h"
#define CC cubic
#define CC_UNCOUPLED
#include "shim.bpf.h"
