/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ledbatpp.h: LEDBAT++, a background transport that holds a small queue. draft-irtf-iccrg-ledbat-plus-plus-01.
 *
 *   q = min of the last 4 RTTs - base;  GAIN = 1 / min(16, ceil(2 TARGET / base)), TARGET = 60 ms
 *   slow start: IW 2, W += GAIN acked; the first one ends when q > 3/4 TARGET
 *   each RTT: q < TARGET: W += GAIN; q > TARGET: W += max(GAIN - W (q / TARGET - 1), -W / 2); W >= 2
 *   slowdown: 2 RTT after the first slow start ends ssthresh = W, W = 2 for 2 RTT, slow start to ssthresh; the next one
 *   9 times the duration of this one later
 * Certain for -01. OURS: base is the smallest RTT of the last one to two halves of base_window_s (the draft: ten minutes);
 * an RTT has passed when data sent at its start is acked; loss is TCP's halving, within a slowdown's hold of the window
 * before it; a reduction that is undone has not ended the first slow start; a slowdown within a slow start leaves ssthresh
 * as it is; idle time is no part of a slowdown. */
#ifndef LEDBATPP_H
#define LEDBATPP_H
#include "flow.h"
#define ledbatpp_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH | FLOW_EVENT)
#define ledbatpp_KERNEL "pc_ledbat"
#define ledbatpp_PAPER "Balasubramanian, Ertugay, Havey: LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus-01"
#define ledbatpp_BASIS "certain for version 01 of the draft, except for how the base delay ages"
#define ledbatpp_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(target_us, 60000, 1000, 1000000, "TARGET: queueing delay that is held [us]", "the draft") \
	P(gain_most, 16, 1, 64, "largest divisor of GAIN", "the draft") \
	P(first_window, 2, 1, 1000, "IW [packet]", "the draft") \
	P(slowdown, 1, 0, 1, "periodic slowdowns", "the draft") \
	P(slowdown_ratio, 9, 1, 1000, "pause after a slowdown, in its durations", "the draft") \
	P(base_window_s, 600, 2, 36000, "how long a base delay is remembered at most [s]", "the draft: 10 minutes")
struct ledbatpp_params { ledbatpp_PARAMS(FLOW_PARAM_FIELD) };
enum { LEDBAT_FIRST, LEDBAT_AVOID, LEDBAT_HOLD, LEDBAT_RAMP };
struct ledbatpp_state {
	u64 round_end, next_us, began_us, aged_us; /* next slowdown, 0: none planned, or end of the hold; its beginning */
	u64 seen_us;                               /* the last ACK */
	u32 rtt_us[4], at;                         /* the last four samples */
	u32 base_us, old_base_us;                  /* of this half of the window of time and of the last */
	u32 phase, frac, ended;                    /* frac: of cwnd, packets * 2^16 */
	u32 before, pad;                           /* the window before the slowdown */
};

FLOW_FN void ledbatpp_init(struct flow *f, struct ledbatpp_state *s, const struct ledbatpp_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	f->cwnd = flow_max(flow_min(f->cwnd, p->first_window), 1);
	s->round_end = f->nxt;
	s->aged_us = s->seen_us = f->now_us;
	s->phase = LEDBAT_FIRST;
}
FLOW_FN void ledbatpp_ack(struct flow *f, const struct flow_ack *a, struct ledbatpp_state *s,
			  const struct ledbatpp_params *p)
{
	s->seen_us = f->now_us;
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->ended = 1;
	}
	if (!a->rtt_us)
		return;
	s->rtt_us[s->at & 3] = a->rtt_us;
	s->at = (s->at + 1) & 3;
	if (f->now_us - s->aged_us > (u64)p->base_window_s * 500000) {
		s->aged_us = f->now_us;
		s->old_base_us = s->base_us;
		s->base_us = a->rtt_us;
	}
	if (!s->base_us || a->rtt_us < s->base_us)
		s->base_us = a->rtt_us;
}
FLOW_FN u32 ledbatpp_base(const struct ledbatpp_state *s)
{
	return s->old_base_us ? flow_min(s->base_us, s->old_base_us) : s->base_us;
}
/* q; 0 before the first sample */
FLOW_FN u32 ledbatpp_queue(const struct ledbatpp_state *s)
{
	u32 least = 0xffffffff;
	for (u32 i = 0; i < 4; i++)
		if (s->rtt_us[i])
			least = flow_min(least, s->rtt_us[i]);
	return least == 0xffffffff ? 0 : least - flow_min(ledbatpp_base(s), least);
}
/* 1 / GAIN */
FLOW_FN u32 ledbatpp_divisor(const struct ledbatpp_state *s, const struct ledbatpp_params *p)
{
	u64 base = flow_max(ledbatpp_base(s), 1);
	return (u32)flow_max64(flow_min64((2ull * p->target_us + base - 1) / base, p->gain_most), 1);
}
FLOW_FN void ledbatpp_slow(struct flow *f, u32 acked, struct ledbatpp_state *s, u32 divisor)
{
	u64 up = ((u64)acked << 16) / flow_max(divisor, 1) + s->frac;
	s->frac = (u32)up & 0xffff;
	f->cwnd = flow_min(flow_min(f->cwnd + (u32)(up >> 16), f->ssthresh), f->cwnd_max);
}
FLOW_FN void ledbatpp_grow(struct flow *f, const struct flow_ack *a, struct ledbatpp_state *s,
			   const struct ledbatpp_params *p)
{
	u32 q = ledbatpp_queue(s), divisor = ledbatpp_divisor(s, p), ended = s->ended;
	u64 target = flow_max(p->target_us, 1), rtt = f->srtt_us;
	s->ended = 0;
	if (f->ssthresh >= FLOW_INFINITE)
		s->phase = LEDBAT_FIRST;
	if (s->phase == LEDBAT_FIRST && ((u64)q * 4 > target * 3 || !flow_slow(f))) {
		f->ssthresh = flow_min(f->ssthresh, flow_max(f->cwnd, 2));
		s->phase = LEDBAT_AVOID;
		s->next_us = p->slowdown ? f->now_us + 2 * rtt : 0;
	}
	if (s->phase == LEDBAT_AVOID && s->next_us && f->now_us >= s->next_us) {
		s->phase = LEDBAT_HOLD;
		s->began_us = f->now_us;
		s->next_us = f->now_us + 2 * rtt;
		s->before = f->cwnd;
		/* the slow start after an idle time or a timeout goes to its ssthresh, by way of this */
		f->ssthresh = flow_max(flow_max(flow_min(f->ssthresh, f->cwnd_max), f->cwnd), 2);
		f->cwnd = flow_min(f->cwnd, 2);
		s->frac = 0;
		f->cwnd_cnt = 0;
	}
	if (s->phase == LEDBAT_HOLD) {
		if (f->now_us < s->next_us)
			return;
		s->phase = LEDBAT_RAMP;
	}
	if (s->phase == LEDBAT_RAMP && !flow_slow(f)) {
		s->phase = LEDBAT_AVOID;
		s->next_us = p->slowdown ? f->now_us + (f->now_us - s->began_us) * p->slowdown_ratio : 0;
	}
	if (flow_slow(f)) { /* the first, a ramp (which q does not end), or after a timeout */
		if (flow_limited(f))
			ledbatpp_slow(f, flow_min(a->acked, 65535), s, divisor);
		return;
	}
	if (ended) {
		u64 w = ((u64)f->cwnd << 16) + s->frac, up = 65536 / divisor, less = 0;
		if (q > target)
			less = (flow_min64(w >> 8, 1u << 28) * (q - target) / target) << 8; /* products < 2^60 */
		if (less > up)
			w -= flow_min64(less - up, w / 2);
		else if (flow_limited(f))
			w += up - less;
		w = flow_min64(flow_max64(w, 2u << 16), (u64)flow_max(f->cwnd_max, 1) << 16);
		f->cwnd = (u32)(w >> 16);
		s->frac = (u32)w & 0xffff;
		f->ssthresh = flow_min(f->ssthresh, f->cwnd);
	}
}
FLOW_FN u32 ledbatpp_ssthresh(struct flow *f, struct ledbatpp_state *s, const struct ledbatpp_params *p)
{
	(void)p;
	return s->phase == LEDBAT_HOLD ? flow_max(s->before >> 1, 2) : flow_half(f);
}
FLOW_FN void ledbatpp_event(struct flow *f, u32 event, struct ledbatpp_state *s, const struct ledbatpp_params *p)
{
	if (event == FLOW_TX_START && f->una == f->nxt) {
		s->began_us += f->now_us - s->seen_us;
		s->seen_us = f->now_us;
	}
	if (event != FLOW_TIMEOUT && event != FLOW_RECOVERED)
		return;
	if (s->phase == LEDBAT_FIRST || s->phase == LEDBAT_HOLD) {
		s->phase = LEDBAT_AVOID;
		s->next_us = p->slowdown ? f->now_us + 2ull * f->srtt_us : 0;
	}
}
#endif
