/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* lp.h: TCP-LP, low priority by early congestion indication. Kuzmanovic, Knightly: TCP-LP: a distributed algorithm for low
 * priority data transfer, INFOCOM 2003.
 *
 *   sowd: delay smoothed with gamma = 1/8; indication: sowd > d_min + delta (d_max - d_min), delta = 0.15
 *   first indication: cwnd /= 2 and an inference phase of itt = 3 RTT without growth; another inside it: cwnd = 1
 *   otherwise Reno
 * Certain, from memory of the paper: the above. OURS: the delay is the RTT (the one-way delay of timestamps if `owd` is 1
 * and the ACK has it); a further indication counts from ACKs of packets sent after the cut, because earlier ones cannot know
 * of it; it starts the phase anew; slow start ends at an indication; d_min is kept, d_max is that of the last one to two
 * windows of 10 s; no indication while d_max - d_min is below floor_us, nor from a delay of less than least_us, which a flow
 * makes by itself; from a receiver that acknowledges pairs an ACK of one packet gives d_min only, since it was held back. */
#ifndef LP_H
#define LP_H
#include "flow.h"
#define lp_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW)
#define lp_KERNEL "pc_lp"
#define lp_PAPER "Kuzmanovic, Knightly: TCP-LP: A Distributed Algorithm for Low Priority Data Transfer, INFOCOM 2003"
#define lp_BASIS "certain from memory, except for the source of the delay, its ageing and which second indication counts"
#define lp_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(delta, 150, 1, 900, "queue that counts as congestion [1/1000 of the full one]", "INFOCOM 2003: 0.15") \
	P(inference, 3, 1, 64, "inference phase [RTT]", "INFOCOM 2003, Linux: 3") \
	P(owd, 0, 0, 1, "one-way delay instead of the RTT, where known", "ours: 0; the paper has 1") \
	P(floor_us, 1000, 0, 1000000, "least d_max - d_min that says anything [us]", "ours") \
	P(least_us, 5000, 0, 1000000, "a smaller queueing delay is no indication [us]", "ours") \
	P(max_age_s, 10, 1, 3600, "d_max is forgotten after one to two times this [s]", "ours")
struct lp_params { lp_PARAMS(FLOW_PARAM_FIELD) };
struct lp_state {
	u64 inference_end_us, mark, aged_us; /* mark: nxt at the last cut */
	u64 smooth;                          /* delay * 8; 0: none */
	u32 min_us, max_us, old_max_us;
	u32 owd_origin, owd_known, early;    /* early: an indication that grow has not seen */
	u32 pairs, pad;                      /* the receiver acknowledges pairs */
};

FLOW_FN void lp_init(struct flow *f, struct lp_state *s, const struct lp_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->aged_us = f->now_us;
}
FLOW_FN void lp_ack(struct flow *f, const struct flow_ack *a, struct lp_state *s, const struct lp_params *p)
{
	u32 delay = a->rtt_us, most;
	if (p->owd) {
		if (!(a->flags & FLOW_ACK_OWD))
			return;
		if (!s->owd_known) {
			s->owd_known = 1;
			s->owd_origin = a->owd_us - 0x40000000u; /* only differences count; 2^30 keeps smaller ones above 0 */
		}
		delay = a->owd_us - s->owd_origin;
	}
	if (!delay)
		return;
	s->pairs |= a->acked > 1;
	if (s->pairs && a->acked == 1) {
		if (s->min_us)
			s->min_us = flow_min(s->min_us, delay);
		return; /* the receiver may have waited for another packet */
	}
	if (!s->min_us) {
		s->min_us = s->max_us = s->old_max_us = delay;
		s->smooth = (u64)delay << 3;
	}
	if (f->now_us - s->aged_us > (u64)p->max_age_s * 1000000) {
		s->aged_us = f->now_us;
		s->old_max_us = s->max_us;
		s->max_us = delay;
	}
	s->min_us = flow_min(s->min_us, delay);
	s->max_us = flow_max(s->max_us, delay);
	s->smooth = s->smooth - (s->smooth >> 3) + delay;
	most = flow_max(s->max_us, s->old_max_us);
	s->early = most - s->min_us >= flow_max(p->floor_us, 1) && (s->smooth >> 3) > (u64)s->min_us + p->least_us &&
		   (s->smooth >> 3) * 1000 > (u64)s->min_us * 1000 + (u64)(most - s->min_us) * p->delta;
}
FLOW_FN void lp_grow(struct flow *f, const struct flow_ack *a, struct lp_state *s, const struct lp_params *p)
{
	int inside = f->now_us < s->inference_end_us;
	if (s->early && (!inside || f->una > s->mark)) {
		f->cwnd = inside ? 1 : flow_max(f->cwnd >> 1, 1);
		f->cwnd_cnt = 0;
		f->ssthresh = flow_min(f->ssthresh, flow_max(f->cwnd, 2));
		s->mark = f->nxt;
		s->inference_end_us = f->now_us + (u64)f->srtt_us * p->inference;
		s->early = 0;
		return;
	}
	if (!inside)
		flow_reno_grow(f, a);
}
#endif
