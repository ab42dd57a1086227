/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* gsam.h: slow start (SS) with a smooth transition (ST) once the RTT has risen, then LIA (CA).
 * Dong et al.: Tuning the aggressive slow-start behavior of MPTCP for short flows, IEEE Access 7 (2019) 6010-6024.
 *
 * Certain: the three phases; SS as in TCP; ST begins when the RTT, smoothed as in RFC 6298, reaches a threshold; ST grows
 * more gently and ends at ssthresh; subflows act independently of each other in SS and ST.
 * RECONSTRUCTION (ours, the paper's text was not at hand): the threshold RTT_min + max(RTT_min / 8, 4 ms), the growth of
 * 1/8 of the acked packets in ST, ssthresh = 2 cwnd at the start of ST if it is still infinite, at least 4 samples,
 * no return from ST to SS, and plain SS after a timeout or an idle time, where ssthresh is known; so it is where the window
 * fell without a hook (flow.h), but not once the reduction is undone.
 * Why 1/8: the queue must show before it overflows. With W packets in flight over a path of C packets/s and a queue of B,
 * the last safe doubling starts at W = B with a mean queue of B / 4; the smoothed RTT shows about half of that rise. */
#ifndef GSAM_H
#define GSAM_H
#include "lia.h"
#define gsam_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_EVENT)
#define gsam_KERNEL "pc_gsam"
#define gsam_PAPER "Dong et al.: Tuning the Aggressive Slow-Start Behavior of MPTCP for Short Flows, IEEE Access 7, 2019"
#define gsam_BASIS "reconstruction: the phases are certain, the threshold and the growth of the transition are ours"
#define gsam_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(theta_shift, 3, 0, 8, "ST begins at RTT_min + RTT_min / 2^theta_shift", "ours") \
	P(theta_floor_us, 4000, 0, 1000000, "least rise of the RTT that begins ST [us]", "ours") \
	P(st_div, 8, 0, 64, "packets acked in ST for one packet of window; 0: one packet per RTT", "ours") \
	P(samples, 4, 1, 64, "RTT samples before ST may begin", "ours") \
	P(st_after_rto, 0, 0, 1, "ST also after a timeout or an idle time", "ours")
struct gsam_params { gsam_PARAMS(FLOW_PARAM_FIELD) };
enum { GSAM_SS, GSAM_ST, GSAM_CA };
struct gsam_state { u32 phase, rtt_min_us, samples, st_cnt, st_off, need; };

FLOW_FN void gsam_init(struct flow *f, struct gsam_state *s, const struct gsam_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->phase = flow_slow(f) ? GSAM_SS : GSAM_CA;
	s->rtt_min_us = f->srtt_us;
	s->samples = s->st_cnt = s->st_off = s->need = 0;
}
FLOW_FN void gsam_ack(struct flow *f, const struct flow_ack *a, struct gsam_state *s, const struct gsam_params *p)
{
	(void)f;
	(void)p;
	if (!a->rtt_us)
		return;
	if (!s->rtt_min_us || a->rtt_us < s->rtt_min_us)
		s->rtt_min_us = a->rtt_us;
	if (s->samples < 1000)
		s->samples++;
}
FLOW_FN u64 gsam_threshold(const struct gsam_state *s, const struct gsam_params *p)
{
	return (u64)s->rtt_min_us + flow_max(s->rtt_min_us >> (p->theta_shift & 31), p->theta_floor_us);
}
/* what no hook told: a window that is below ssthresh again, a reduction that is undone */
FLOW_FN void gsam_look(const struct flow *f, struct gsam_state *s, const struct gsam_params *p)
{
	if (flow_slow(f) && (s->phase == GSAM_CA || (f->state == FLOW_LOSS && !p->st_after_rto))) {
		s->phase = GSAM_SS;
		s->st_off = !p->st_after_rto && (f->state == FLOW_LOSS || f->ssthresh < FLOW_INFINITE);
	} else if (f->state != FLOW_LOSS && f->ssthresh >= FLOW_INFINITE) {
		s->st_off = 0;
	}
}
FLOW_FN void gsam_step(struct flow *f, u32 acked, struct gsam_state *s, const struct gsam_params *p)
{
	gsam_look(f, s, p);
	if (!flow_limited(f))
		return;
	if (s->phase != GSAM_CA && !flow_slow(f))
		s->phase = GSAM_CA;
	if (s->phase == GSAM_SS && !s->st_off && s->samples >= p->samples && f->srtt_us >= gsam_threshold(s, p)) {
		s->phase = GSAM_ST;
		s->st_cnt = 0;
		if (f->ssthresh >= FLOW_INFINITE)
			f->ssthresh = f->cwnd * 2;
	}
	if (s->phase == GSAM_SS) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
		s->phase = GSAM_CA;
	} else if (s->phase == GSAM_ST) {
		u32 div = p->st_div ? p->st_div : flow_max(f->cwnd, 1), up;
		s->st_cnt += acked;
		up = s->st_cnt / flow_max(div, 1);
		s->st_cnt -= up * div;
		f->cwnd = flow_min(flow_min(f->cwnd + up, f->ssthresh), f->cwnd_max);
		if (!flow_slow(f))
			s->phase = GSAM_CA;
		return;
	}
	lia_avoid(f, acked, &s->need);
}
FLOW_FN void gsam_grow(struct flow *f, const struct flow_ack *a, struct gsam_state *s, const struct gsam_params *p)
{
	gsam_step(f, a->acked, s, p);
}
FLOW_FN void gsam_event(struct flow *f, u32 event, struct gsam_state *s, const struct gsam_params *p)
{
	(void)f;
	if (event == FLOW_TIMEOUT || event == FLOW_IDLE) {
		s->phase = GSAM_SS;
		s->st_off = !p->st_after_rto && (event == FLOW_TIMEOUT || f->ssthresh < FLOW_INFINITE);
	}
}
#endif
