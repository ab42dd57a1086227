/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* balia.h: the Balanced Linked Adaptation. Peng, Walid, Hwang, Low: Multipath TCP: analysis, design and implementation;
 * draft-walid-mptcp-congestion-control; formulas as in the out-of-tree Linux MPTCP.
 *
 *   x_p = w_p / rtt_p;  a = max_p(x_p) / x_r
 *   per packet acked: w_r += x_r / (rtt_r (sum_p x_p)^2) * (1 + a) / 2 * (4 + a) / 5
 *   loss: w_r -= w_r / 2 * min(a, 3/2), at least 1 left
 * The own RTT is the unit of time. Certain; ours: a with 10 bits of fraction where Linux takes the whole quotient. */
#ifndef BALIA_H
#define BALIA_H
#include "flow.h"
#define balia_hooks (FLOW_INIT | FLOW_GROW | FLOW_SSTHRESH)
#define balia_KERNEL "pc_balia"
#define balia_PAPER "Peng, Walid, Hwang, Low: Multipath TCP: Analysis, Design, and Implementation (BALIA)"
#define balia_BASIS "certain"
#define balia_PARAMS(P) FLOW_START_PARAM(P)
struct balia_params { balia_PARAMS(FLOW_PARAM_FIELD) };
struct balia_state { u32 need; /* packets acked for one of window, as last used */ };

/* a * 2^10, 2^10 to 2^20; *sum becomes sum_p x_p rtt_r * 2^12 */
FLOW_FN u64 balia_ratio(struct flow *f, u64 *sum)
{
	u64 total = 0, most = 0, own = (u64)flow_min(flow_max(f->cwnd, 1), 1u << 20) << 12;
	for (u32 i = 0; i < FLOW_PEERS; i++) {
		u64 rate = flow_min(flow_peer_cwnd(f, i), 1u << 20) * flow_peer_ratio(f, i); /* <= 2^40 */
		total = flow_forget(f, total + rate);
		most = flow_forget(f, rate > most ? rate : most);
	}
	*sum = flow_max64(total, own);
	most = flow_max64(most, own);
	return flow_min64((most << 10) / flow_max64(own, 1), 1u << 20);
}
FLOW_FN void balia_init(struct flow *f, struct balia_state *s, const struct balia_params *p)
{
	(void)s;
	flow_start(f, p->initial_ssthresh_bytes);
}
FLOW_FN void balia_grow(struct flow *f, const struct flow_ack *a, struct balia_state *s, const struct balia_params *p)
{
	u32 acked = a->acked;
	u64 sum, ratio, need;
	(void)p;
	if (!flow_limited(f))
		return;
	if (flow_slow(f)) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
	}
	s->need = f->cwnd;
	if (f->group.n > 1 && f->srtt_us) {
		ratio = balia_ratio(f, &sum);
		sum = flow_min64(sum >> 6, 0x1ffffff);                  /* * 2^6, below 2^25 */
		need = sum * sum / flow_max(f->cwnd, 1);                /* * 2^12, below 2^50 */
		need = need * 2560 / ((1024 + ratio) * (4096 + ratio)); /* * 10 * 2^20 / 2^12, below 2^62 */
		s->need = flow_max((u32)flow_min64(need, 0x3fffffff), 1);
	}
	flow_add(f, s->need, acked);
}
FLOW_FN u32 balia_ssthresh(struct flow *f, struct balia_state *s, const struct balia_params *p)
{
	u64 sum, ratio, less;
	(void)s;
	(void)p;
	if (f->group.n <= 1 || !f->srtt_us)
		return flow_half(f);
	ratio = flow_min64(balia_ratio(f, &sum), 1536);
	less = ((u64)f->cwnd * ratio) >> 11;
	return flow_max(f->cwnd - (u32)flow_min64(less, f->cwnd), 1);
}
#endif
