/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* imtcp_bg.h: ImTCP-bg, a background transport that is held below the measured available bandwidth. Tsugawa, Hasegawa,
 * Murata: Background TCP data transfer with inline network measurement, APCC 2005, IEICE E89-B 2006.
 *
 *   each RTT: RTTcur / RTTmin > delta: the measurement is inaccurate: cwnd *= RTTmin / RTTcur, maxcwnd stays
 *   else: A = (1 - gamma) A + gamma Acur; maxcwnd = A RTTmin; Reno with cwnd <= maxcwnd
 * Certain: these rules. OURS, the values: gamma = 1/2, as A must fall as fast as a foreground flow grows; delta = 1.05: with
 * a buffer of a quarter of the path's product 1.2 is hardly ever exceeded, and with one product Reno lost 5 %.
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
#define imtcp_bg_hooks imtcp_hooks
#define imtcp_bg_KERNEL "pc_imtcpbg"
#define imtcp_bg_PAPER "Tsugawa, Hasegawa, Murata: Background TCP Data Transfer with Inline Network Measurement, APCC 2005"
#define imtcp_bg_BASIS "the two rules are certain; delta, gamma and the growth when quiet are ours; the measurement is a reconstruction"
#define IMTCP_BG_OWN(P) \
	P(delta, 1050, 1001, 10000, "RTT above which a measurement is inaccurate [1/1000 RTTmin]", "ours; the paper's value was not found") \
	P(least_us, 1000, 0, 1000000, "a smaller queueing delay says nothing [us]", "ours") \
	P(gamma, 500, 1, 1000, "share of a new result in A [1/1000]", "ours; the paper's value was not found") \
	P(quiet, 64, 0, 100000, "rounds without loss and high RTT after which the window may climb", "ours") \
	P(climb, 4, 1, 100000, "packets acked for one more while it climbs", "ours") \
	P(stale_s, 5, 1, 3600, "the bound is lifted so long after the last result [s]", "ours")
#define imtcp_bg_PARAMS(P) imtcp_PARAMS(P) IMTCP_BG_OWN(P)
struct imtcp_bg_params {
	struct imtcp_params imtcp;
	IMTCP_BG_OWN(FLOW_PARAM_FIELD)
};
struct imtcp_bg_state {
	struct imtcp_state imtcp;
	u64 a_Bps, round_end, updated_us; /* A, 0: none yet; when it last changed */
	u32 rtt_min_us, round_us;         /* RTTmin; smallest of this round, 0: none */
	u32 last_us, done_us;             /* smallest of the last round; RTTcur */
	u32 ended, quiet;                 /* 1 until grow has judged the round; rounds without loss and high RTT */
	u32 results, cap;                 /* results seen; maxcwnd, 0: none */
};

FLOW_FN void imtcp_bg_init(struct flow *f, struct imtcp_bg_state *s, const struct imtcp_bg_params *p)
{
	imtcp_init(f, &s->imtcp, &p->imtcp);
	s->rtt_min_us = f->srtt_us;
	s->round_end = f->nxt;
}
FLOW_FN void imtcp_bg_ack(struct flow *f, const struct flow_ack *a, struct imtcp_bg_state *s,
			  const struct imtcp_bg_params *p)
{
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->done_us = s->last_us && (!s->round_us || s->last_us < s->round_us) ? s->last_us : s->round_us;
		s->last_us = s->round_us;
		s->round_us = 0;
		s->ended = 1;
	}
	if (a->rtt_us) {
		if (!s->rtt_min_us || a->rtt_us < s->rtt_min_us)
			s->rtt_min_us = a->rtt_us;
		if (!s->round_us || a->rtt_us < s->round_us)
			s->round_us = a->rtt_us;
	}
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
	s->updated_us = f->now_us;
	/* A <= 2^36, RTTmin held to 2^24 us */
	s->cap = (u32)flow_min64(flow_div(s->a_Bps * flow_min(s->rtt_min_us, 1u << 24) / 1000000, f->mss), 1u << 29) +
		 s->imtcp.extra;
}
FLOW_FN void imtcp_bg_grow(struct flow *f, const struct flow_ack *a, struct imtcp_bg_state *s,
			   const struct imtcp_bg_params *p)
{
	int inaccurate = (u64)s->done_us * 1000 > (u64)s->rtt_min_us * p->delta &&
			 (u64)s->done_us > (u64)s->rtt_min_us + p->least_us;
	if (s->results != s->imtcp.results) {
		s->results = s->imtcp.results;
		if (!inaccurate)
			imtcp_bg_result(f, s, p);
	}
	if (s->cap && f->now_us - s->updated_us > (u64)p->stale_s * 1000000)
		s->cap = 0;
	if (s->ended) {
		s->ended = 0;
		s->quiet = inaccurate ? 0 : flow_min(s->quiet + 1, 1u << 30);
		if (inaccurate) {
			f->cwnd = flow_max((u32)flow_div((u64)f->cwnd * s->rtt_min_us, s->done_us), flow_min(f->cwnd, 2));
			f->cwnd_cnt = 0;
			f->ssthresh = flow_min(f->ssthresh, flow_max(f->cwnd, 2));
			return;
		}
	}
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
}
#endif
