/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* olia.h: the Opportunistic Linked Increases Algorithm. draft-khalili-mptcp-congestion-control-05.
 *
 *   l1, l2: bytes acked between the last two losses, and since the last; l = max(l1, l2)
 *   best = argmax l_p / rtt_p^2;  maxw = argmax w_p;  collected = best without maxw
 *   per packet acked on r: w_r += (w_r / rtt_r^2) / (sum_p w_p / rtt_p)^2 + alpha_r / w_r
 *   alpha_r = 1 / (n |collected|) in collected; -1 / (n |maxw|) in maxw if collected is not empty; else 0
 * The own RTT is the unit of time. word[0] is l. Certain but for: `best` (the draft prints l^2 / rtt, its Linux code
 * l / rtt^2, which is taken here); a sibling in recovery counts with the window that it last reported, not with ssthresh. */
#ifndef OLIA_H
#define OLIA_H
#include "flow.h"
#define olia_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH)
#define olia_KERNEL "pc_olia"
#define olia_PAPER "Khalili et al.: Opportunistic Linked-Increases, draft-khalili-mptcp-congestion-control-05"
#define olia_BASIS "certain, except for the order of best paths: the draft and its Linux code differ, the code is followed"
#define olia_PARAMS(P) FLOW_START_PARAM(P)
struct olia_params { olia_PARAMS(FLOW_PARAM_FIELD) };
struct olia_state {
	u64 loss_una, l1; /* una at the last loss; l1 */
	u32 frac, pad;    /* of cwnd, packets * 2^32 */
};

FLOW_FN void olia_publish(struct flow *f, const struct olia_state *s)
{
	f->word[0] = flow_max64(s->l1, f->una - s->loss_una);
}
FLOW_FN void olia_init(struct flow *f, struct olia_state *s, const struct olia_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->loss_una = f->una;
	f->word[0] = 0;
}
FLOW_FN void olia_ack(struct flow *f, const struct flow_ack *a, struct olia_state *s, const struct olia_params *p)
{
	(void)a;
	(void)p;
	olia_publish(f, s);
}
/* l_p x_p^2, to compare paths with: l in 16 bytes < 2^32, x < 2^16 */
FLOW_FN u64 olia_quality(struct flow *f, u32 i, u64 ratio)
{
	u64 l = flow_forget(f, i == f->self ? f->word[0] : f->group.peer[i].word[0]);
	u64 x = flow_forget(f, flow_min64(ratio >> 2, 65535));
	return flow_forget(f, flow_min64(l >> 4, 0xffffffff)) * x * x;
}
FLOW_FN void olia_avoid(struct flow *f, u32 acked, struct olia_state *s)
{
	u64 sum = 0, best = 0, most = 0, n = 0, maxw = 0, collected = 0, own_best, own_max, w, plus, minus = 0, total;
	u64 cwnd = flow_max(f->cwnd, 1);
	u32 i;
	if (f->group.n <= 1 || !f->srtt_us) {
		flow_add(f, f->cwnd, acked);
		return;
	}
	cwnd = flow_forget(f, cwnd) & 0xffffffff;
	acked = (u32)flow_forget(f, acked);
	sum = flow_forget(f, sum);
	best = flow_forget(f, best);
	most = flow_forget(f, most);
	n = flow_forget(f, n);
	for (i = 0; i < FLOW_PEERS; i++) {
		u64 x = flow_forget(f, flow_peer_ratio(f, i)), q;
		if (!x)
			continue;
		w = flow_forget(f, flow_min(flow_peer_cwnd(f, i), 1u << 19));
		q = flow_forget(f, olia_quality(f, i, x));
		sum = flow_forget(f, sum + w * x); /* < 2^43 */
		best = flow_forget(f, q > best ? q : best);
		most = flow_forget(f, w > most ? w : most);
		n = flow_forget(f, n + 1);
	}
	maxw = flow_forget(f, maxw);
	collected = flow_forget(f, collected);
	for (i = 0; i < FLOW_PEERS; i++) {
		u64 x = flow_forget(f, flow_peer_ratio(f, i)), is_best, is_max;
		if (!x)
			continue;
		is_best = flow_forget(f, olia_quality(f, i, x) == best);
		is_max = flow_forget(f, flow_min(flow_peer_cwnd(f, i), 1u << 19) == most);
		maxw = flow_forget(f, maxw + is_max);
		collected = flow_forget(f, collected + (is_best & (is_max ^ 1)));
	}
	w = flow_min(f->cwnd, 1u << 19);
	own_max = w == most;
	i = f->self & (FLOW_PEERS - 1);
	own_best = olia_quality(f, i, flow_peer_ratio(f, i)) == best;
	acked = flow_min(acked, 65535);
	sum = flow_min64(sum >> 6, 0x7fffffff);   /* * 2^6; at least w * 2^6, so plus <= 2^32 / w */
	plus = flow_div(w << 44, sum * sum);      /* packets * 2^32 per packet acked */
	if (collected && own_best && !own_max)
		plus += flow_div(flow_div(1ull << 32, n * collected), w);
	else if (collected && own_max)
		minus = flow_div(flow_div(1ull << 32, n * maxw), w);
	total = (cwnd << 32) + s->frac + plus * acked; /* cwnd < 2^30, plus * acked < 2^50 */
	minus *= acked;
	total = total > minus ? total - minus : 0;
	total = flow_max64(total, 1ull << 32);
	total = flow_min64(total, (u64)flow_max(f->cwnd_max, 1) << 32);
	f->cwnd = (u32)(total >> 32);
	s->frac = (u32)total;
}
FLOW_FN void olia_grow(struct flow *f, const struct flow_ack *a, struct olia_state *s, const struct olia_params *p)
{
	u32 acked = a->acked;
	(void)p;
	olia_publish(f, s);
	if (!flow_limited(f))
		return;
	if (flow_slow(f)) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
	}
	olia_avoid(f, acked, s);
}
FLOW_FN u32 olia_ssthresh(struct flow *f, struct olia_state *s, const struct olia_params *p)
{
	(void)p;
	s->l1 = f->una - s->loss_una;
	s->loss_una = f->una;
	return f->group.n > 1 ? flow_max(f->cwnd >> 1, 1) : flow_half(f);
}
#endif
