/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* css.h: Coupled Slow Start. Wang, Xue, Yue, Han, Xu, Hong: Coupled slow-start: improving the efficiency and friendliness
 * of MPTCP's slow-start, GLOBECOM 2017. Congestion avoidance is LIA.
 *
 * Certain, from the abstract: the exponential growths of the subflows are linked, so that together they burst less, and
 * ssthresh of the subflows is set anew so that they go over to congestion avoidance when the connection is fast enough.
 * RECONSTRUCTION, LOW CONFIDENCE (the paper's formulas were not at hand; everything below is ours):
 *   in slow start w_r += acked * max_p(w_p) / sum_p(w_p), p over the subflows in slow start: together as fast as one
 *   V: what one TCP over the best path would have: starts at V0, doubles each smallest RTT, stops when a subflow's RTT
 *      rises above RTT_min + max(RTT_min / 8, 4 ms)
 *   once V has stopped and sum_p(w_p) >= V, or when a subflow has a loss: ssthresh = max(w, 2) in all that are in slow start
 *   after a loss of its own a subflow knows its ssthresh, and only the linked growth remains
 * word[0]: reductions this subflow has had; word[1]: 1 if its RTT is above the threshold. */
#ifndef CSS_H
#define CSS_H
#include "lia.h"
#define css_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH)
#define css_KERNEL "pc_css"
#define css_PAPER "Wang et al.: Coupled Slow-Start: Improving the Efficiency and Friendliness of MPTCP's Slow-Start, GLOBECOM 2017"
#define css_BASIS "reconstruction of low confidence: the aims are certain, every formula is ours"
#define css_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(reference, 10, 1, 1000, "V0: first window of the reference flow [packet]", "ours: RFC 6928") \
	P(theta_shift, 3, 0, 8, "the RTT is high above RTT_min + RTT_min / 2^theta_shift", "ours") \
	P(theta_floor_us, 4000, 0, 1000000, "least rise of the RTT that counts as high [us]", "ours")
struct css_params { css_PARAMS(FLOW_PARAM_FIELD) };
struct css_state {
	u64 doubled_us, losses; /* when V last doubled; all subflows' reductions as last seen */
	u32 v, stopped;
	u32 rtt_min_us, own_losses;
	u32 frac, need; /* frac: of cwnd, packets * 2^16 */
};

FLOW_FN u64 css_losses(struct flow *f, const struct css_state *s)
{
	u64 sum = 0;
	for (u32 i = 0; i < FLOW_PEERS; i++) {
		u64 one = i == f->self ? s->own_losses : f->group.peer[i].used ? f->group.peer[i].word[0] : 0;
		sum = flow_forget(f, sum + one);
	}
	return sum;
}
FLOW_FN void css_init(struct flow *f, struct css_state *s, const struct css_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->doubled_us = f->now_us;
	s->v = p->reference;
	s->rtt_min_us = f->srtt_us;
	s->losses = css_losses(f, s);
	f->word[0] = f->word[1] = 0;
}
FLOW_FN void css_ack(struct flow *f, const struct flow_ack *a, struct css_state *s, const struct css_params *p)
{
	if (a->rtt_us && (!s->rtt_min_us || a->rtt_us < s->rtt_min_us))
		s->rtt_min_us = a->rtt_us;
	f->word[0] = s->own_losses;
	f->word[1] = f->srtt_us >= (u64)s->rtt_min_us + flow_max(s->rtt_min_us >> (p->theta_shift & 31), p->theta_floor_us);
}
FLOW_FN void css_grow(struct flow *f, const struct flow_ack *a, struct css_state *s, const struct css_params *p)
{
	u32 acked = flow_min(a->acked, 65535);
	u64 all = 0, slow = 0, most = 0, high = 0, rtt = 0xffffffff, losses, up;
	(void)p;
	if (!flow_limited(f))
		return;
	losses = css_losses(f, s);
	if (flow_slow(f)) {
		for (u32 i = 0; i < FLOW_PEERS; i++) {
			const struct flow_peer *q = &f->group.peer[i];
			u64 w = flow_min(flow_peer_cwnd(f, i), 1u << 20), mine = i == f->self, grows, srtt = flow_peer_srtt(f, i);
			if (!q->used)
				continue;
			grows = flow_forget(f, mine || q->cwnd < q->ssthresh);
			all = flow_forget(f, all + w);
			slow = flow_forget(f, slow + w * grows);
			most = flow_forget(f, w * grows > most ? w * grows : most);
			high = flow_forget(f, high | (mine ? f->word[1] : q->word[1]));
			rtt = flow_forget(f, srtt && srtt < rtt ? srtt : rtt);
		}
		if (high)
			s->stopped = 1;
		if (!s->stopped && f->now_us - s->doubled_us >= rtt) {
			s->doubled_us = f->now_us;
			s->v = flow_min(s->v * 2, 1u << 20);
		}
		if (!s->own_losses && (losses > s->losses || (s->stopped && all >= s->v)))
			f->ssthresh = flow_max(f->cwnd, 2);
	}
	s->losses = losses;
	if (flow_slow(f)) {
		/* the product is below 2^16 * 2^20 * 2^16 */
		up = flow_div(((u64)acked * most) << 16, slow);
		up = flow_min64(up, (u64)acked << 16) + s->frac;
		s->frac = (u32)up & 0xffff;
		f->cwnd = flow_min(flow_min(f->cwnd + (u32)(up >> 16), f->ssthresh), f->cwnd_max);
		return;
	}
	lia_avoid(f, acked, &s->need);
}
FLOW_FN u32 css_ssthresh(struct flow *f, struct css_state *s, const struct css_params *p)
{
	(void)p;
	s->own_losses++;
	f->word[0] = s->own_losses;
	return flow_half(f);
}
#endif
