/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* lp.h: TCP-LP, low priority by early congestion indication. Kuzmanovic, Knightly: TCP-LP: a distributed algorithm for low
 * priority data transfer, INFOCOM 2003.
 *
 *   sowd: delay smoothed with gamma = 1/8; indication: sowd > d_min + delta (d_max - d_min), delta = 0.15
 *   first indication: cwnd /= 2 and an inference phase of itt = 3 RTT without growth; another inside it: cwnd = 1
 *   otherwise Reno
 * Certain, from memory of the paper: the above. OURS: the delay is the RTT where timestamps do not give the one-way delay
 * to the microsecond (or `owd` is 0); a further indication counts from ACKs of packets sent after the cut, because earlier ones
 * cannot know of it, sowd begins anew with them, and it starts the phase anew; a loss before them is of the same window
 * and does not halve again; d_min is kept, d_max is that of the last one to two windows of 10 minutes; no indication
 * while d_max - d_min is below floor_us, nor from a delay of less than least_us (or least_share of the smallest RTT),
 * which a flow makes by itself. Slow start ends at an indication, where also the smallest delay of the round so far, of
 * 8 packets or the window, says so, because its own bursts wait; the window has doubled since, so that it is quartered.
 * From a receiver that acknowledges pairs (flow_pairs.h) an ACK of one packet gives d_min only, since it was held back. A
 * flow alone swings between (1 + d) / 2 and 1 + d of the path's BDP, d the queue of an indication: below about d = 0.3 it
 * cannot use nine tenths of the path. */
#ifndef LP_H
#define LP_H
#include "flow_pairs.h"
#define lp_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH)
#define lp_KERNEL "pc_lp"
#define lp_PAPER "Kuzmanovic, Knightly: TCP-LP: A Distributed Algorithm for Low Priority Data Transfer, INFOCOM 2003"
#define lp_BASIS "certain from memory, except for the source of the delay, its ageing, slow start and which second indication counts"
#define lp_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(delta, 150, 1, 900, "queue that counts as congestion [1/1000 of the full one]", "INFOCOM 2003: 0.15") \
	P(inference, 3, 1, 64, "inference phase [RTT]", "INFOCOM 2003, Linux: 3") \
	P(owd, 1, 0, 1, "one-way delay, where known to the microsecond, in place of the RTT", "INFOCOM 2003: one-way") \
	P(floor_us, 1000, 0, 1000000, "least d_max - d_min that says anything [us]", "ours") \
	P(least_us, 5000, 0, 1000000, "a smaller queueing delay is no indication [us]", "ours") \
	P(least_share, 0, 0, 1000, "nor is one of less than this share of the smallest RTT; not of a one-way delay [1/1000]", "ours: 0; the paper has none") \
	P(max_age_s, 600, 1, 3600, "d_max is forgotten after one to two times this [s]", "ours")
struct lp_params { lp_PARAMS(FLOW_PARAM_FIELD) };
struct lp_state {
	u64 inference_end_us, mark, aged_us; /* mark: nxt at the last cut */
	u64 smooth, round_end;               /* smooth: delay * 8; 0: none */
	u32 min_us, max_us, old_max_us;
	u32 owd_origin, owd_known, early;    /* early: an indication that grow has not seen */
	u32 round_us, seen;                  /* this round: smallest delay, 0: none; packets */
	u32 cut, pad;                        /* no packet since the cut is acked */
	struct flow_pairs pairs;
};

FLOW_FN void lp_init(struct flow *f, struct lp_state *s, const struct lp_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->aged_us = f->now_us;
	s->round_end = f->nxt;
}
FLOW_FN void lp_ack(struct flow *f, const struct flow_ack *a, struct lp_state *s, const struct lp_params *p)
{
	u32 delay = a->rtt_us, most, held = (u32)flow_pairs_held(&s->pairs, f, a);
	u64 queue; /* that counts as congestion [us] */
	s->early = 0; /* one that a reduction hid is old */
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->round_us = s->seen = 0;
	}
	if (p->owd && (a->flags & FLOW_ACK_OWD)) {
		if (!s->owd_known) {
			s->owd_known = 1;
			s->owd_origin = a->owd_us - 0x40000000u; /* only differences count; 2^30 keeps smaller ones above 0 */
			s->min_us = s->round_us = 0;             /* those were RTTs */
		}
		delay = a->owd_us - s->owd_origin;
	} else if (s->owd_known) {
		if (p->owd)
			return;
		s->owd_known = 0; /* `owd` was set to 0 while the flow lived: RTTs again */
		s->min_us = s->round_us = 0;
	}
	if (!delay)
		return;
	if (held) {
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
	if (!s->round_us || delay < s->round_us)
		s->round_us = delay;
	s->seen += a->acked;
	s->smooth = s->smooth - (s->smooth >> 3) + delay;
	if (s->cut && f->una > s->mark) {
		s->cut = 0;
		s->smooth = (u64)delay << 3;
	}
	most = flow_max(s->max_us, s->old_max_us);
	queue = flow_max64(p->least_us, s->owd_known ? 0 : (u64)s->min_us * p->least_share / 1000);
	queue = flow_max64(queue, (u64)(most - s->min_us) * p->delta / 1000);
	s->early = most - s->min_us >= flow_max(p->floor_us, 1) && (s->smooth >> 3) > s->min_us + queue &&
		   (!flow_slow(f) || (s->seen >= flow_min(f->cwnd, 8) && s->round_us > s->min_us + queue));
}
FLOW_FN void lp_grow(struct flow *f, const struct flow_ack *a, struct lp_state *s, const struct lp_params *p)
{
	int inside = f->now_us < s->inference_end_us;
	if (s->early && (!inside || f->una > s->mark)) {
		f->cwnd = inside ? 1 : flow_max(f->cwnd >> (flow_slow(f) ? 2 : 1), 1);
		f->cwnd_cnt = 0;
		f->ssthresh = flow_min(f->ssthresh, flow_max(f->cwnd, 2));
		s->mark = f->nxt;
		s->cut = 1;
		s->inference_end_us = f->now_us + (u64)f->srtt_us * p->inference;
		s->early = 0;
		return;
	}
	if (!inside)
		flow_reno_grow(f, a);
}
FLOW_FN u32 lp_ssthresh(struct flow *f, struct lp_state *s, const struct lp_params *p)
{
	(void)p;
	return s->cut ? flow_max(f->cwnd, 2) : flow_half(f);
}
#endif
