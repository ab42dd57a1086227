/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* lia.h: the Linked Increases Algorithm. RFC 6356 section 3.
 *
 *   alpha = cwnd_total * max_p(cwnd_p / rtt_p^2) / (sum_p cwnd_p / rtt_p)^2
 *   per packet acked on subflow i: cwnd_i += min(alpha / cwnd_total, 1 / cwnd_i)
 * so that one packet is due for every T = (sum_p w_p x_p)^2 / max_p(w_p x_p^2) acked, at least w_i, where w is cwnd and
 * x_p = rtt_i / rtt_p: the unit of the RTT drops out. Slow start, recovery and halving are TCP's, per subflow.
 * Certain; ours: this integer form, and T anew at every ACK instead of once per RTT. */
#ifndef LIA_H
#define LIA_H
#include "flow.h"
#define lia_hooks (FLOW_INIT | FLOW_GROW)
#define lia_KERNEL "pc_lia"
#define lia_PAPER "RFC 6356: Coupled Congestion Control for Multipath Transport Protocols, section 3"
#define lia_BASIS "certain"
#define lia_PARAMS(P) FLOW_START_PARAM(P)
struct lia_params { lia_PARAMS(FLOW_PARAM_FIELD) };
struct lia_state { u32 need; /* T as last used */ };

/* packets acked for one packet of window */
FLOW_FN u32 lia_need(struct flow *f)
{
	u64 sum = 0, best = 0;
	if (f->group.n <= 1 || !f->srtt_us)
		return f->cwnd;
	for (u32 i = 0; i < FLOW_PEERS; i++) {
		u64 x = flow_peer_ratio(f, i);                         /* <= 2^20 */
		u64 w = flow_min(flow_peer_cwnd(f, i), 1u << 20);
		u64 one = (w * x * x) >> 12;                           /* w x^2 * 2^12, < 2^60 before the shift */
		sum = flow_forget(f, sum + w * x);                     /* < 2^44 */
		best = flow_forget(f, one > best ? one : best);
	}
	sum = flow_min64(sum >> 6, 0x7fffffff);                        /* * 2^6 */
	return flow_max((u32)flow_min64(flow_div(sum * sum, best), 0x3fffffff), f->cwnd);
}
/* congestion avoidance, for whoever ends in LIA */
FLOW_FN void lia_avoid(struct flow *f, u32 acked, u32 *need)
{
	*need = lia_need(f);
	flow_add(f, *need, acked);
}
FLOW_FN void lia_init(struct flow *f, struct lia_state *s, const struct lia_params *p)
{
	(void)s;
	flow_start(f, p->initial_ssthresh_bytes);
}
/* slow start, then LIA */
FLOW_FN void lia_step(struct flow *f, u32 acked, u32 *need)
{
	if (!flow_limited(f))
		return;
	if (flow_slow(f)) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
	}
	lia_avoid(f, acked, need);
}
FLOW_FN void lia_grow(struct flow *f, const struct flow_ack *a, struct lia_state *s, const struct lia_params *p)
{
	(void)p;
	lia_step(f, a->acked, &s->need);
}
#endif
