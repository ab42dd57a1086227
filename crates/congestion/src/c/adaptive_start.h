/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* adaptive_start.h: slow start that ends when the connection holds what its paths hold. Congestion avoidance is LIA.
 * Ours, for the open problem of Kojima, Kimura (see subflow_switch.h): docs/controllers.md has the reasons.
 *
 *   rate      of the ACKs of a train, first to last: a bottleneck spaces them (Hoe 1996), so that one round tells its rate
 *             before any queue stands. Each subflow has the rate of its own ACKs, and that of all the connection's ACKs
 *             within its trains; the largest counts. Shared bottleneck: the latter is its rate. Disjoint: the sum of theirs
 *   load      sum_p(w_p / RTT_min_p); a sibling counts for min(cwnd, 4 in flight): one without data takes no room; and for
 *             its own rate + 6 packets an RTT_min of this subflow at most: what it holds beyond stands in a queue
 *   full      own window / RTT_min >= own rate + 6 packets an RTT_min, or load >= all's rate + the same
 *   START     slow start; full: HOLD
 *   HOLD      while not full: one packet for each acked, up to TCP's first ssthresh. Full: LIA; but a window below the mean
 *             grows if less than 0.9 (below half the mean: 1.2) of all's rate is in flight, and asks the largest to give up
 *             as much
 *   AVOID     ssthresh was reached, as TCP's first value or by the second reduction: LIA. While not full the connection
 *             grows by a packet an RTT; after the second reduction, by what is acked up to the load that siblings leave unused
 *   pace      until then at 1.1 of the own part of the load in all's rate, at least 1.2 windows an RTT_min (4 below half the
 *             mean)
 *   joining   a first window of at most 10, of what doubles the connection at most; full: of the largest window at most
 *
 * Rates and loads are in packets per 2^30 us. word[0]: packets delivered (20 bits; differences count), the time of joining
 * [2^6 us] (20 bits; counts until something is delivered) and RTT_min [us] (24 bits). word[1]: all's rate and, above, the own. */
#ifndef ADAPTIVE_START_H
#define ADAPTIVE_START_H
#include "lia.h"
#define adaptive_start_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH | FLOW_SEND)
#define adaptive_start_KERNEL "pc_adaptive"
#define adaptive_start_PAPER "none: ours. Rates from the spacing of ACKs: Hoe, SIGCOMM 1996; first windows: draft-barik-mptcp-lisa-01"
#define adaptive_start_BASIS "congestion avoidance is LIA: certain; the slow start is ours"
#define adaptive_start_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(gain, 1000, 750, 4000, "full at this part of rate RTT_min [1/1000]", "ours") \
	P(extra, 6, 2, 1000, "and so many packets more", "ours: two or three of a delayed ACK are not yet acked") \
	P(train, 4, 2, 64, "packets acked in a train before its rate counts", "ours") \
	P(pace, 1100, 1000, 8000, "pace over the share of the rate [1/1000]", "ours") \
	P(pace_least, 1200, 1000, 8000, "least pace, windows an RTT_min [1/1000]", "Linux in congestion avoidance, of the RTT") \
	P(pace_needy, 4000, 1000, 8000, "least pace of a window below half the mean, windows an RTT_min [1/1000]", "ours") \
	P(refill, 1, 0, 1000, "reductions of a subflow after which its window may still be filled up", "ours") \
	P(first_most, 10, 1, 1000, "largest first window that a further subflow is given [packet]", "draft-barik-mptcp-lisa-01, RFC 6928") \
	P(first_least, 3, 1, 1000, "least first window while there is room [packet]", "draft-barik-mptcp-lisa-01, RFC 3390")
struct adaptive_start_params { adaptive_start_PARAMS(FLOW_PARAM_FIELD) };
enum { ADAPTIVE_START, ADAPTIVE_HOLD, ADAPTIVE_AVOID };
/* The connection as a subflow sees it, at each ACK anew; in the state, because the kernel's verifier follows what is on the
 * stack. */
struct adaptive_start_view {
	u64 delivered, window, load, air; /* air: load of what is in flight */
	u64 all;                          /* largest of all's rates; of siblings at first */
	u64 active, most, largest;        /* most: window of the sibling in slot largest */
	u64 idle;                         /* load of what siblings' windows would let go and do not */
};
struct adaptive_start_state {
	u64 delivered, round_end;             /* packets; byte */
	u64 head_us, head_own, head_all;      /* when the train began, what had been delivered by then */
	u64 own, all, pace_Bps;               /* rates of trains */
	u64 joined;                           /* 2^6 us */
	struct adaptive_start_view view;
	u32 phase, rtt_min_us;
	u32 fresh, trains;                    /* a train begins; a rate is of a train, not of a pair */
	u32 ssthresh, losses;                 /* ssthresh: TCP's, while HOLD has its own */
	u32 need, pad;
};
#define ADAPTIVE_DELIVERED 0xfffffull
#define ADAPTIVE_JOINED 0xfffffull
#define ADAPTIVE_RATE 0xffffffffull

/* w packets each RTT; 2^32 * 2^30 */
FLOW_FN u64 adaptive_start_rate(u32 w, u64 rtt_us) { return flow_div((u64)w << 30, rtt_us); }
/* bytes per second of a rate below 2^34 */
FLOW_FN u64 adaptive_start_Bps(const struct flow *f, u64 rate)
{
	return ((rate * (f->mss & 0xffff)) >> 12) * 1000000 >> 18;
}
FLOW_FN void adaptive_start_publish(struct flow *f, const struct adaptive_start_state *s)
{
	f->word[0] = (u64)flow_min(s->rtt_min_us, 0xffffff) << 40 | s->joined << 20 | (s->delivered & ADAPTIVE_DELIVERED);
	f->word[1] = s->own << 32 | s->all;
}
/* how long ago a sibling joined [2^6 us] */
FLOW_FN u64 adaptive_start_age(const struct flow *f, const struct flow_peer *q)
{
	return ((f->now_us >> 6) - (q->word[0] >> 20)) & ADAPTIVE_JOINED;
}
/* What takes room of a sibling's window. One that has just joined may have data or not, which is not seen for an RTT. */
FLOW_FN u64 adaptive_start_room(struct flow *f, const struct flow_peer *q, u64 known)
{
	u64 w = (u64)q->in_flight * 4;
	if (!known)
		return adaptive_start_age(f, q) * 128 < (q->word[0] >> 40) * 3 ? q->cwnd / 10 : 0;
	w = flow_forget(f, flow_min64(q->cwnd, w));
	return flow_max64(q->in_flight, w);
}
/* What a sibling's path takes of the load of its window, once its rate is known: the rest stands in a queue. */
FLOW_FN u64 adaptive_start_takes(const struct flow_peer *q, u64 load, u64 extra)
{
	u64 own = q->word[1] >> 32;
	return own ? flow_min64(load, own + extra) : load;
}
FLOW_FN void adaptive_start_look(struct flow *f, struct adaptive_start_state *s, const struct flow_ack *a, u64 extra)
{
	struct adaptive_start_view *v = &s->view;
	v->delivered = s->delivered;
	v->window = f->cwnd;
	v->load = flow_forget(f, adaptive_start_rate(f->cwnd, s->rtt_min_us));
	v->air = flow_forget(f, adaptive_start_rate(f->in_flight + a->acked, s->rtt_min_us));
	v->active = flow_forget(f, f->cwnd > 2);
	v->all = v->most = v->idle = flow_forget(f, 0);
	v->largest = flow_forget(f, FLOW_NOBODY);
	for (u32 i = 0; i < FLOW_PEERS; i++) {
		const struct flow_peer *q = &f->group.peer[i];
		u64 known = flow_forget(f, q->word[0] & ADAPTIVE_DELIVERED), w, x;
		if (!q->used || i == f->self)
			continue;
		w = flow_forget(f, adaptive_start_room(f, q, known));
		v->delivered += known;
		v->window += w;
		x = flow_forget(f, adaptive_start_rate((u32)w, q->word[0] >> 40));
		v->load += adaptive_start_takes(q, x, extra);
		x = flow_forget(f, adaptive_start_rate(q->in_flight, q->word[0] >> 40));
		v->air += x;
		v->all = flow_forget(f, flow_max64(v->all, q->word[1] & ADAPTIVE_RATE));
		x = flow_forget(f, known && q->cwnd > w ? q->cwnd - w : 0);
		v->idle += adaptive_start_rate((u32)x, q->word[0] >> 40);
		x = flow_forget(f, w > 2);
		v->active += x;
		x = flow_forget(f, w);
		if (x > v->most) {
			v->most = x;
			v->largest = i;
		}
	}
}
FLOW_FN void adaptive_start_init(struct flow *f, struct adaptive_start_state *s, const struct adaptive_start_params *p)
{
	u64 old = 0, young = 0, load = 0, rate = 0, largest = 0, most, least;
	flow_start(f, p->initial_ssthresh_bytes);
	s->round_end = f->nxt;
	s->rtt_min_us = f->srtt_us;
	s->fresh = 1;
	s->phase = flow_slow(f) ? ADAPTIVE_START : ADAPTIVE_AVOID;
	s->ssthresh = f->ssthresh;
	s->joined = (f->now_us >> 6) & ADAPTIVE_JOINED;
	adaptive_start_publish(f, s);
	for (u32 i = 0; i < FLOW_PEERS; i++) {
		const struct flow_peer *q = &f->group.peer[i];
		u64 rtt = q->word[0] >> 40, known = q->word[0] & ADAPTIVE_DELIVERED;
		if (!q->used || i == f->self)
			continue;
		/* what it has delivered is heard an ACK late */
		known = flow_forget(f, known || adaptive_start_age(f, q) * 64 >= rtt);
		load = flow_forget(f, load + adaptive_start_rate(q->cwnd, rtt));
		rate = flow_forget(f, flow_max64(rate, q->word[1] & ADAPTIVE_RATE));
		old = flow_forget(f, old + (known ? q->cwnd : 0));
		young = flow_forget(f, young + (known ? 0 : q->cwnd));
		largest = flow_forget(f, flow_max64(largest, known ? q->cwnd : 0));
	}
	if (!old)
		return; /* the first one, or all begin together: as TCP does */
	most = flow_max(p->first_most, f->cwnd);
	least = flow_min64(flow_max(p->first_least, f->cwnd), most);
	if (rate && load * 1000 >= rate * p->gain)
		f->cwnd = (u32)flow_min64(largest, p->first_most);
	else
		f->cwnd = (u32)flow_max64(flow_min64(old > young ? old - young : 0, most), least);
	f->cwnd = flow_max(flow_min(f->cwnd, f->cwnd_max), 1);
}
FLOW_FN void adaptive_start_ack(struct flow *f, const struct flow_ack *a, struct adaptive_start_state *s,
				const struct adaptive_start_params *p)
{
	(void)p;
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->fresh = 1;
	}
	if (a->rtt_us && (!s->rtt_min_us || a->rtt_us < s->rtt_min_us))
		s->rtt_min_us = a->rtt_us;
}
/* A train goes from the first ACK of a round on. Until one is long enough, pairs of ACKs must do. Later ones count if they are
 * of half a window, or a quarter of all windows: a few ACKs that were held up together are no rate. */
FLOW_FN void adaptive_start_measure(struct flow *f, struct adaptive_start_state *s, const struct adaptive_start_params *p)
{
	const struct adaptive_start_view *v = &s->view;
	u64 us, own, all;
	if (s->fresh || f->state != FLOW_OPEN || v->delivered < s->head_all) {
		s->fresh = f->state != FLOW_OPEN; /* holes filled make many packets of one ACK */
		s->head_us = f->now_us;
		s->head_own = s->delivered;
		s->head_all = v->delivered;
	}
	us = flow_forget(f, f->now_us - s->head_us);
	own = flow_forget(f, flow_min64(s->delivered - s->head_own, ADAPTIVE_RATE));
	all = flow_forget(f, flow_min64(v->delivered - s->head_all, ADAPTIVE_RATE));
	if (!us)
		return;
	if (own >= p->train && (!s->own || own * 2 >= f->cwnd))
		s->own = flow_max64(s->own, flow_min64((own << 30) / us, ADAPTIVE_RATE));
	s->own = flow_forget(f, s->own);
	if (all >= p->train && (!s->trains || all * 4 >= v->window)) {
		s->all = flow_max64(s->trains ? s->all : 0, flow_min64((all << 30) / us, ADAPTIVE_RATE));
		s->trains = 1;
	} else if (!s->trains && all) {
		s->all = flow_min64((all << 30) / us, ADAPTIVE_RATE);
	}
	s->all = flow_forget(f, s->all);
}
FLOW_FN u64 adaptive_start_pace(struct flow *f, const struct adaptive_start_state *s, const struct adaptive_start_params *p,
				int needy)
{
	const struct adaptive_start_view *v = &s->view;
	u64 share, least;
	if ((s->phase == ADAPTIVE_AVOID && s->losses) || !v->all || !s->rtt_min_us)
		return 0;
	least = flow_forget(f, flow_min64(adaptive_start_rate(f->cwnd, s->rtt_min_us), ADAPTIVE_RATE));
	share = flow_forget(f, flow_div(v->all * least, v->load)); /* 2^32 * 2^32 */
	least = flow_forget(f, least * (needy ? p->pace_needy : p->pace_least) / 1000);
	return adaptive_start_Bps(f, flow_min64(flow_max64(share * p->pace / 1000, least), ADAPTIVE_RATE));
}
FLOW_FN void adaptive_start_grow(struct flow *f, const struct flow_ack *a, struct adaptive_start_state *s,
				 const struct adaptive_start_params *p)
{
	struct adaptive_start_view *v = &s->view;
	u64 mean, bound, extra, load;
	u32 acked = a->acked;
	int needy, poor, full;
	s->delivered += acked;
	extra = flow_forget(f, adaptive_start_rate(p->extra, s->rtt_min_us));
	adaptive_start_look(f, s, a, extra);
	adaptive_start_measure(f, s, p);
	adaptive_start_publish(f, s);
	v->all = flow_forget(f, flow_max64(v->all, s->all));
	mean = flow_forget(f, flow_div(v->window, v->active));
	needy = (int)flow_forget(f, f->cwnd * 2ull < mean);
	s->pace_Bps = flow_forget(f, adaptive_start_pace(f, s, p, needy));
	if (f->mail && s->phase != ADAPTIVE_AVOID && f->cwnd > mean) {
		f->cwnd -= (u32)flow_min64(f->mail, f->cwnd - mean);
		f->cwnd = flow_min(flow_max(f->cwnd, 2), f->cwnd_max);
		if (s->phase == ADAPTIVE_START)
			s->phase = ADAPTIVE_HOLD; /* who asks has seen that all is full */
	}
	if (!flow_limited(f))
		return;
	if (s->phase == ADAPTIVE_START && !flow_slow(f))
		s->phase = ADAPTIVE_AVOID;
	load = flow_forget(f, adaptive_start_rate(f->cwnd, s->rtt_min_us));
	bound = s->own * p->gain / 1000 + extra;
	full = (int)flow_forget(f, s->own && load >= bound);
	poor = (int)flow_forget(f, !full && f->cwnd + acked <= mean);
	bound = v->all * p->gain / 1000 + extra;
	full = (int)flow_forget(f, full || (v->all && v->load >= bound));
	if (s->phase == ADAPTIVE_START && full)
		s->phase = ADAPTIVE_HOLD;
	if (s->phase == ADAPTIVE_HOLD) {
		f->ssthresh = flow_max(flow_min(f->ssthresh, f->cwnd), 2);
		if (full && poor)
			full = (int)flow_forget(f, v->air * 10 >= v->all * (needy ? 12 : 9));
		if (!full && f->cwnd + acked <= s->ssthresh) {
			if (poor && v->load >= bound && v->most > mean) {
				f->post_to = (u32)v->largest;
				f->post = acked;
			}
			f->cwnd = flow_min(f->cwnd + acked, f->cwnd_max);
			f->ssthresh = flow_max(f->cwnd, 2);
			return;
		}
	}
	if (!full && !flow_slow(f)) {
		if (s->losses <= p->refill) {
			flow_add(f, (u32)flow_min64(v->window, 0x3fffffff), acked); /* as one TCP flow does */
			return;
		}
		if (load < v->idle) {
			f->cwnd = flow_min(f->cwnd + acked, f->cwnd_max);
			return;
		}
	}
	lia_step(f, acked, &s->need);
}
FLOW_FN u32 adaptive_start_ssthresh(struct flow *f, struct adaptive_start_state *s, const struct adaptive_start_params *p)
{
	s->losses = flow_min(s->losses + 1, 1u << 20);
	s->phase = s->losses > p->refill ? ADAPTIVE_AVOID : ADAPTIVE_HOLD;
	return flow_half(f);
}
FLOW_FN void adaptive_start_send(struct flow *f, struct adaptive_start_state *s, const struct adaptive_start_params *p)
{
	(void)p;
	f->pace_Bps = s->pace_Bps;
}
#endif
