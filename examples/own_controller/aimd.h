/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* aimd.h: a controller of one's own, as small as one can be: additive increase by `add` packets a round trip, and a
 * reduction to `keep` hundredths of the window. flow.h says what a controller sees and may set. */
#ifndef AIMD_H
#define AIMD_H
#include "flow.h"
#define aimd_hooks (FLOW_GROW | FLOW_SSTHRESH)
#define aimd_KERNEL "pc_aimd"
#define aimd_PAPER "Chiu, Jain: Analysis of the increase and decrease algorithms for congestion avoidance, 1989"
#define aimd_BASIS "an example"
#define aimd_PARAMS(P) \
	P(add, 1, 1, 100, "packets a round trip", "Chiu, Jain") \
	P(keep, 50, 1, 99, "hundredths of the window after a loss", "Chiu, Jain")
#define aimd_UNCOUPLED /* for the kernel: it never looks at the other subflows */
struct aimd_params { aimd_PARAMS(FLOW_PARAM_FIELD) };
struct aimd_state { u32 unused; };

FLOW_FN void aimd_grow(struct flow *f, const struct flow_ack *a, struct aimd_state *s, const struct aimd_params *p)
{
	u32 acked = a->acked;
	(void)s;
	if (!flow_limited(f))
		return;
	if (flow_slow(f))
		acked = flow_slow_start(f, acked);
	if (acked)
		flow_add(f, flow_max(f->cwnd / flow_max(p->add, 1), 1), acked);
}
FLOW_FN u32 aimd_ssthresh(struct flow *f, struct aimd_state *s, const struct aimd_params *p)
{
	(void)s;
	return flow_max((u32)((u64)f->cwnd * p->keep / 100), 2);
}
#endif
