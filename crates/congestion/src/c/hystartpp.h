/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* hystartpp.h: HyStart++: slow start that slows down when the RTT of a round has risen. RFC 9406 section 4.2. Then LIA.
 *
 *   a round ends when the data sent up to its start is acked; each has its smallest RTT
 *   SS: after N_RTT_SAMPLE samples, if currentRoundMinRTT >= lastRoundMinRTT + clamp(lastRoundMinRTT / 8, 4 ms, 16 ms):
 *       cssBaselineMinRtt = currentRoundMinRTT, conservative slow start (CSS) begins
 *   CSS: growth divided by 4; back to SS if the round's RTT falls below the baseline; after 5 rounds ssthresh = cwnd
 *   an ACK counts for at most L = 8 packets
 * Only in the first slow start, as the RFC advises: as long as no reduction stands. A timeout's, which TCP may still undo,
 * is none before Loss is over; until then slow start is plain. Certain, from memory of the RFC. */
#ifndef HYSTARTPP_H
#define HYSTARTPP_H
#include "lia.h"
#define hystartpp_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW)
#define hystartpp_KERNEL "pc_hystart"
#define hystartpp_PAPER "RFC 9406: HyStart++: Modified Slow Start for TCP, section 4.2"
#define hystartpp_BASIS "certain"
#define hystartpp_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(rtt_thresh_min_us, 4000, 1, 1000000, "MIN_RTT_THRESH [us]", "RFC 9406 section 4.3") \
	P(rtt_thresh_max_us, 16000, 1, 1000000, "MAX_RTT_THRESH [us]", "RFC 9406 section 4.3") \
	P(rtt_divisor, 8, 1, 64, "MIN_RTT_DIVISOR", "RFC 9406 section 4.3") \
	P(samples, 8, 1, 64, "N_RTT_SAMPLE: RTT samples of a round before it is judged", "RFC 9406 section 4.3") \
	P(growth_divisor, 4, 2, 64, "CSS_GROWTH_DIVISOR", "RFC 9406 section 4.3") \
	P(rounds, 5, 1, 64, "CSS_ROUNDS: rounds of conservative slow start", "RFC 9406 section 4.3") \
	P(limit, 8, 1, 1000000, "L: packets that one ACK may count for", "RFC 9406 section 4.3")
struct hystartpp_params { hystartpp_PARAMS(FLOW_PARAM_FIELD) };
enum { HYSTART_SS, HYSTART_CSS, HYSTART_DONE };
struct hystartpp_state {
	u64 round_end;
	u32 phase, samples;            /* samples of this round */
	u32 current_us, last_us;       /* smallest RTT of this round and of the last; 0: none */
	u32 baseline_us, rounds, cnt, need; /* rounds: ended since CSS began */
	u32 first, pad;                /* ssthresh of the first slow start */
};

FLOW_FN void hystartpp_init(struct flow *f, struct hystartpp_state *s, const struct hystartpp_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->round_end = f->nxt;
	s->phase = flow_slow(f) ? HYSTART_SS : HYSTART_DONE;
	s->first = f->ssthresh;
}
FLOW_FN void hystartpp_ack(struct flow *f, const struct flow_ack *a, struct hystartpp_state *s,
			   const struct hystartpp_params *p)
{
	(void)p;
	if (s->phase == HYSTART_DONE)
		return;
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->last_us = s->current_us;
		s->current_us = s->samples = 0;
		if (s->phase == HYSTART_CSS)
			s->rounds++;
	}
	if (!a->rtt_us)
		return;
	s->samples++;
	if (!s->current_us || a->rtt_us < s->current_us)
		s->current_us = a->rtt_us;
}
FLOW_FN void hystartpp_grow(struct flow *f, const struct flow_ack *a, struct hystartpp_state *s,
			    const struct hystartpp_params *p)
{
	u32 acked = a->acked;
	if (!flow_limited(f))
		return;
	if (f->state == FLOW_LOSS || f->ssthresh < s->first) {
		lia_step(f, acked, &s->need);
		return;
	}
	if (s->phase != HYSTART_DONE && !flow_slow(f))
		s->phase = HYSTART_DONE;
	if (s->phase == HYSTART_SS && s->samples >= p->samples && s->last_us) {
		u32 rise = flow_min(s->last_us / flow_max(p->rtt_divisor, 1), p->rtt_thresh_max_us);
		if (s->current_us >= (u64)s->last_us + flow_max(rise, p->rtt_thresh_min_us)) {
			s->phase = HYSTART_CSS;
			s->baseline_us = s->current_us;
			s->rounds = s->cnt = 0;
		}
	} else if (s->phase == HYSTART_CSS && s->samples >= p->samples && s->current_us < s->baseline_us) {
		s->phase = HYSTART_SS;
	} else if (s->phase == HYSTART_CSS && s->rounds >= p->rounds) {
		s->phase = HYSTART_DONE;
		f->ssthresh = flow_max(f->cwnd, 2);
	}
	if (s->phase == HYSTART_CSS) {
		u32 div = flow_max(p->growth_divisor, 1), up;
		s->cnt += flow_min(acked, p->limit);
		up = s->cnt / div;
		s->cnt -= up * div;
		f->cwnd = flow_min(flow_min(f->cwnd + up, f->ssthresh), f->cwnd_max);
		return;
	}
	if (flow_slow(f)) {
		u32 most = s->phase == HYSTART_SS ? flow_min(acked, p->limit) : acked;
		acked = flow_slow_start(f, most);
		if (!acked)
			return;
	}
	lia_avoid(f, acked, &s->need);
}
#endif
