/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* imtcp_bg.h: ImTCP-bg, a background transport that is held below the measured available bandwidth. Tsugawa, Hasegawa,
 * Murata: Background TCP data transfer with inline network measurement, APCC 2005, IEICE E89-B 2006.
 *
 *   each RTT: RTTcur / RTTmin > delta: the measurement is inaccurate: cwnd *= RTTmin / RTTcur, maxcwnd stays
 *   else: A = (1 - gamma) A + gamma Acur; maxcwnd = A RTTmin; Reno with cwnd <= maxcwnd
 * Certain: these rules. OURS, the values: gamma = 1/2, as A must fall as fast as a foreground flow grows; delta = 1.05: with
 * a buffer of a quarter of the path's product 1.2 is hardly ever exceeded, and with one product Reno lost 5 %.
 * OURS, for paths of few packets: imtcp_bg_small.h, which `small` at 0 switches off whole.
 * OURS, the rest:
 * - RTTcur is the smallest sample of the last two rounds: one of them holds a packet before a train, behind which the own
 *   queue is empty. (The smoothed RTT with delayed ACKs stays above RTTmin and would hold a small window down for ever.)
 * - maxcwnd has the packets added that the last train needed beyond its share: without them its gap goes unused.
 * - a result that is a lower bound raises A at once.
 * - below maxcwnd one packet for `climb` acked once `quiet` rounds had neither a loss nor a high RTT: then nobody competes, and
 *   Reno would need as many RTTs as packets are missing.
 * - a queueing delay below least_us says nothing: hosts make it, and at an RTT of microseconds delta is less than their noise.
 * - never below 2; no bound before the first result or after stale_s without one, as the bound itself may be too small to
 *   measure with; slow start ends with the first inaccurate round; RTTmin is of the flow's life; a first result is A.
 * Acur comes from imtcp.h, itself a reconstruction, which does not measure below an RTT of a millisecond: there is no maxcwnd
 * then, and a queue of least_us is what the window yields to. */
#ifndef IMTCP_BG_H
#define IMTCP_BG_H
#include "imtcp.h"
#include "imtcp_bg_small.h"
#define imtcp_bg_hooks imtcp_hooks
#define imtcp_bg_KERNEL "pc_imtcpbg"
#define imtcp_bg_PAPER "Tsugawa, Hasegawa, Murata: Background TCP Data Transfer with Inline Network Measurement, APCC 2005"
#define imtcp_bg_BASIS "the two rules are certain, but not kept to on small paths unless small is 0; delta, gamma, growth when quiet: ours; the measurement: a reconstruction"
#define IMTCP_BG_OWN(P) \
	P(delta, 1050, 1001, 10000, "RTT above which a measurement is inaccurate [1/1000 RTTmin]", "ours; the paper's value was not found") \
	P(least_us, 1000, 0, 1000000, "a smaller queueing delay says nothing [us]", "ours") \
	P(gamma, 500, 1, 1000, "share of a new result in A [1/1000]", "ours; the paper's value was not found") \
	P(quiet, 64, 0, 100000, "rounds without loss and high RTT after which nobody competes: the window may climb", "ours") \
	P(climb, 4, 1, 100000, "packets acked for one more while it climbs", "ours") \
	P(stale_s, 5, 1, 3600, "the bound is lifted so long after the last result [s]", "ours")
#define imtcp_bg_PARAMS(P) imtcp_PARAMS(P) IMTCP_BG_OWN(P) IMTCP_SMALL_PARAMS(P)
struct imtcp_bg_params {
	struct imtcp_params imtcp;
	IMTCP_BG_OWN(FLOW_PARAM_FIELD)
	struct imtcp_small_params small;
};
struct imtcp_bg_state {
	struct imtcp_state imtcp;
	struct imtcp_small_state small;
	u64 a_Bps;                 /* A, 0: none yet */
	u64 round_end, updated_us; /* when A last changed */
	u32 rtt_min_us, round_us;  /* RTTmin; smallest of this round, 0: none */
	u32 last_us, done_us;      /* smallest of the last round; RTTcur */
	u32 ended, quiet;          /* 1 until grow has judged the round; rounds without loss and high RTT */
	u32 results, cap;          /* results seen; maxcwnd, 0: none */
};
#define IMTCP_BG_RTT_MOST (1u << 24)

FLOW_FN void imtcp_bg_init(struct flow *f, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	imtcp_init(f, &s->imtcp, &p->imtcp);
	s->rtt_min_us = f->srtt_us;
	s->round_end = f->nxt;
	s->small.una = f->una;
}
FLOW_FN int imtcp_bg_high(const struct imtcp_bg_state *s, const struct imtcp_bg_params *p, u32 rtt_us)
{
	return (u64)rtt_us * 1000 > (u64)s->rtt_min_us * p->delta && (u64)rtt_us > (u64)s->rtt_min_us + p->least_us;
}
FLOW_FN u32 imtcp_bg_near(const struct flow *f, const struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	return imtcp_small_near(f, &s->small, &p->small, s->rtt_min_us, s->quiet < p->quiet);
}
FLOW_FN void imtcp_bg_round(struct flow *f, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	u32 two = s->last_us && (!s->round_us || s->last_us < s->round_us) ? s->last_us : s->round_us;
	s->quiet = imtcp_bg_high(s, p, two) ? 0 : flow_min(s->quiet + 1, 1u << 30);
	s->done_us = imtcp_bg_near(f, s, p) ? s->round_us : two;
	s->last_us = s->round_us;
	s->round_us = 0;
	s->round_end = f->nxt;
	s->ended = 1;
}
FLOW_FN void imtcp_bg_ack(struct flow *f, const struct flow_ack *a, struct imtcp_bg_state *s,
			  const struct imtcp_bg_params *p)
{
	if (f->una > s->round_end)
		imtcp_bg_round(f, s, p);
	if (a->rtt_us) {
		if (imtcp_small_least(f, a, &s->small, &p->small, !s->rtt_min_us || a->rtt_us < s->rtt_min_us))
			s->rtt_min_us = a->rtt_us;
		if (!s->round_us || a->rtt_us < s->round_us)
			s->round_us = a->rtt_us;
	}
	s->small.una = f->una;
	if (f->state != FLOW_OPEN && f->state != FLOW_DISORDER)
		s->quiet = 0;
	imtcp_ack(f, a, &s->imtcp, &p->imtcp);
}
/* a new result */
FLOW_FN void imtcp_bg_result(struct flow *f, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	u64 now = s->imtcp.result, gap;
	u64 share = s->a_Bps && !(s->imtcp.bound && now > s->a_Bps) ? p->gamma : 1000;
	gap = (now > s->a_Bps ? now - s->a_Bps : s->a_Bps - now) * share / 1000; /* < 2^36 * 2^10 */
	s->a_Bps = now > s->a_Bps ? s->a_Bps + gap : s->a_Bps - gap;
	s->small.most_Bps = flow_max64(s->small.most_Bps, s->a_Bps);
	s->updated_us = f->now_us;
	/* A <= 2^36, RTTmin held to 2^24 us */
	s->cap = (u32)flow_min64(flow_div(s->a_Bps * flow_min(s->rtt_min_us, IMTCP_BG_RTT_MOST) / 1000000, f->mss), 1u << 29) +
		 s->imtcp.extra;
}
/* an inaccurate round */
FLOW_FN void imtcp_bg_yield(struct flow *f, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	u32 weight = imtcp_small_weight(&s->small, &p->small, imtcp_bg_near(f, s, p));
	u64 queue = (u64)(s->done_us - s->rtt_min_us) * weight / 1000;
	if (imtcp_small_stuck(f, &s->small, &p->small))
		f->cwnd++;
	else
		f->cwnd = flow_max((u32)flow_div((u64)f->cwnd * s->rtt_min_us, s->rtt_min_us + queue), flow_min(f->cwnd, 2));
	f->cwnd_cnt = 0;
	f->ssthresh = flow_min(f->ssthresh, flow_max(f->cwnd, 2));
}
FLOW_FN void imtcp_bg_grow(struct flow *f, const struct flow_ack *a, struct imtcp_bg_state *s,
			   const struct imtcp_bg_params *p)
{
	int inaccurate = imtcp_bg_high(s, p, s->done_us);
	if (s->results != s->imtcp.results) {
		s->results = s->imtcp.results;
		if (!inaccurate)
			imtcp_bg_result(f, s, p);
	}
	if (s->cap && f->now_us - s->updated_us > (u64)p->stale_s * 1000000)
		s->cap = 0;
	if (s->ended) {
		s->ended = 0;
		if (inaccurate) {
			imtcp_bg_yield(f, s, p);
			return;
		}
		s->small.held = s->small.stuck = 0;
	}
	if (s->small.held)
		return;
	if (!flow_slow(f) && flow_limited(f) && s->quiet >= p->quiet && f->cwnd < s->cap)
		flow_add(f, p->climb, a->acked);
	else
		flow_reno_grow(f, a);
	if (s->cap && f->cwnd > s->cap) {
		f->cwnd = s->cap;
		f->ssthresh = flow_min(f->ssthresh, f->cwnd);
	}
}
FLOW_FN void imtcp_bg_event(struct flow *f, u32 event, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	imtcp_event(f, event, &s->imtcp, &p->imtcp);
}
FLOW_FN void imtcp_bg_send(struct flow *f, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	imtcp_send(f, &s->imtcp, &p->imtcp);
	if (s->imtcp.phase == IMTCP_PASS && !imtcp_packets(f, &p->imtcp))
		imtcp_small_pace(f, &p->small, s->rtt_min_us, p->imtcp.rtt_least_us);
}
#endif
