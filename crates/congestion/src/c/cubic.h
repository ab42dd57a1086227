/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* cubic.h: the window as a cubic function of the time since the last reduction. RFC 9438.
 *
 *   W_cubic(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - cwnd_epoch) / C)                           section 4.2
 *   target = W_cubic(t + RTT), held in [cwnd, 1.5 cwnd]; cwnd += (target - cwnd) / cwnd per packet     sections 4.2, 4.4, 4.5
 *   W_est += alpha acked / cwnd, alpha = 3 (1 - beta) / (1 + beta), 1 once W_est >= cwnd_prior; cwnd = max(cwnd, W_est)  4.3
 *   loss: ssthresh = beta cwnd; W_max = cwnd, or cwnd (1 + beta) / 2 if below the last W_max           sections 4.6, 4.7
 *   timeout: the next epoch has K = 0 and W_max = cwnd                                                 section 4.8
 *   slow start ends (HyStart: Ha, Rhee: Taming the elephants, 2011, as Linux has it) when ACKs at most 2 ms apart have come
 *   for half of the least RTT, or when the round's least RTT of 8 samples is above it by an eighth, held in 4..16 ms
 * t in ms; windows with fractions are packets * 2^20 (…_q20). Certain, from memory of the RFC; ours: ssthresh from cwnd
 * instead of FlightSize and idle time taken out of t, as in Linux; t - K held to 131 s. */
#ifndef CUBIC_H
#define CUBIC_H
#include "flow.h"
#define cubic_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH | FLOW_EVENT)
#define cubic_KERNEL "pc_cubic"
#define cubic_PAPER "RFC 9438: CUBIC for Fast and Long-Distance Networks, section 4"
#define cubic_BASIS "certain"
#define cubic_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(c, 400, 1, 4000, "C [1/1000 packet per s^3]", "RFC 9438 section 5: 0.4") \
	P(beta, 700, 100, 950, "window kept at a loss [1/1000]", "RFC 9438 section 4.6: 0.7") \
	P(fast_convergence, 1, 0, 1, "lower W_max further when it falls", "RFC 9438 section 4.7") \
	P(hystart, 1, 0, 1, "leave slow start before the queue is full", "Linux: on; RFC 9438 section 4.10 leaves the choice") \
	P(first, 0, 0, 500, "least growth in an RTT before the first loss [1/1000 of cwnd]", "Linux: 50; RFC 9438 has none") \
	P(friendly, 1000, 1, 1000, "alpha once W_est is at the window before the loss [1/1000]", "RFC 9438 section 4.3: 1; Linux: 533")
struct cubic_params { cubic_PARAMS(FLOW_PARAM_FIELD) };
struct cubic_state {
	u64 epoch_us, last_us; /* start of t, 0: none; last growth */
	u64 est_q20;           /* W_est */
	u32 w_max, prior;      /* W_max of the loss, 0: none; cwnd_prior */
	u32 k_ms, origin;      /* K; the W_max in force */
	u64 round_end, round_us, train_us; /* HyStart: the round's end, when it began, the last ACK of the train */
	u32 round_rtt_us, least_us;        /* least RTT of the round, of all */
	u32 samples, found;                /* of the round; 1: slow start is to end, 2: it has */
	u32 frac_q20, lost;                /* of cwnd; 1: this loss state has been seen */
};

FLOW_FN u32 cubic_root(struct flow *f, u64 x) /* floor of the cube root; x < 2^63 */
{
	u64 root = 0;
	for (u32 bit = 0; bit < 21; bit++) {
		u64 next = root | (1ull << (20 - bit)); /* < 2^21, its cube < 2^63 */
		if (next * next * next <= x)
			root = next;
		root = flow_forget(f, root) & 0x1fffff;
	}
	return (u32)root;
}
FLOW_FN void cubic_init(struct flow *f, struct cubic_state *s, const struct cubic_params *p)
{
	(void)s;
	flow_start(f, p->initial_ssthresh_bytes);
}
FLOW_FN void cubic_reset(struct flow *f, struct cubic_state *s)
{
	s->epoch_us = 0;
	s->w_max = 0;
	s->found = s->least_us = 0;
	s->round_end = f->una; /* a new round */
	s->lost = 1;
}
FLOW_FN void cubic_ack(struct flow *f, const struct flow_ack *a, struct cubic_state *s, const struct cubic_params *p)
{
	u32 rtt = a->rtt_us;
	if (f->state != FLOW_LOSS)
		s->lost = 0;
	else if (!s->lost)
		cubic_reset(f, s); /* a timeout in a recovery, which is no event of its own; so does Linux */
	if (!p->hystart || !rtt || (s->epoch_us && f->now_us - s->epoch_us < 1000000))
		return; /* right after a recovery delays say nothing */
	if (!s->least_us || rtt < s->least_us)
		s->least_us = rtt;
	if (s->found || !flow_slow(f))
		return;
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->round_us = s->train_us = f->now_us;
		s->round_rtt_us = 0xffffffff;
		s->samples = 0;
	}
	if (f->cwnd < 16)
		return;
	if (f->now_us - s->train_us <= 2000) {
		s->train_us = f->now_us;
		if ((f->now_us - s->round_us) * 2 > (u64)s->least_us + 1000)
			s->found = 1;
	}
	s->round_rtt_us = flow_min(s->round_rtt_us, rtt);
	if (s->samples < 8)
		s->samples++;
	else if (s->round_rtt_us > (u64)s->least_us + flow_min(flow_max(s->least_us / 8, 4000), 16000))
		s->found = 1;
}
/* W_cubic [q20] at t ms after the start of the epoch */
FLOW_FN u64 cubic_at(const struct cubic_state *s, const struct cubic_params *p, u64 t)
{
	u64 d = flow_min64(t > s->k_ms ? t - s->k_ms : s->k_ms - t, 131071);
	/* d^3 < 2^51, c <= 2^12; 10^12 / 2^10 gives packets * 2^10 */
	u64 move = (d * d * d * p->c / 976562500ull) << 10;
	u64 top = (u64)s->origin << 20;
	return t > s->k_ms ? top + move : top > move ? top - move : 0;
}
FLOW_FN void cubic_grow(struct flow *f, const struct flow_ack *a, struct cubic_state *s, const struct cubic_params *p)
{
	u32 acked = flow_min(a->acked, 65535);
	u64 t, target, most, window, cwnd = flow_min(f->cwnd, 1u << 20), alpha;
	if (!flow_limited(f))
		return;
	s->last_us = f->now_us;
	if (s->found == 1) {
		if (flow_slow(f))
			f->ssthresh = f->cwnd;
		s->found = 2;
	}
	if (flow_slow(f)) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
		cwnd = flow_min(f->cwnd, 1u << 20);
	}
	if (!s->epoch_us) {
		s->epoch_us = f->now_us;
		s->est_q20 = cwnd << 20;
		s->frac_q20 = 0;
		s->origin = flow_max(s->w_max, (u32)cwnd);
		s->k_ms = cubic_root(f, flow_min64(s->origin - cwnd, 1u << 20) * 1000000000000ull / flow_max(p->c, 1));
	}
	t = (f->now_us - s->epoch_us) / 1000;
	alpha = s->est_q20 >= (u64)s->prior << 20 ? ((u64)p->friendly << 20) / 1000 :
						    ((3ull * (1000 - flow_min(p->beta, 999))) << 20) / (1000 + p->beta);
	s->est_q20 += alpha * acked / flow_max64(cwnd, 1);
	window = (cwnd << 20) + s->frac_q20;
	most = window + (window >> 1);
	target = flow_min64(cubic_at(s, p, t + f->srtt_us / 1000), most);
	if (!s->w_max) /* what the path can carry is not known yet; (cwnd << 20) * first < 2^50 */
		target = flow_max64(target, window + ((cwnd << 20) * p->first) / 1000);
	if (target > window) /* (target - window) < 2^40, acked < 2^16 */
		window += (target - window) * acked / flow_max64(cwnd, 1);
	if (cubic_at(s, p, t) < s->est_q20)
		window = flow_max64(window, s->est_q20);
	window = flow_min64(window, (u64)f->cwnd_max << 20);
	if (f->cwnd <= 1u << 20) {
		f->cwnd = flow_max((u32)(window >> 20), 1);
		s->frac_q20 = (u32)window & 0xfffff;
	}
}
FLOW_FN u32 cubic_ssthresh(struct flow *f, struct cubic_state *s, const struct cubic_params *p)
{
	s->epoch_us = 0;
	s->prior = f->cwnd;
	if (p->fast_convergence && f->cwnd < s->w_max)
		s->w_max = (u32)((u64)f->cwnd * (1000 + p->beta) / 2000);
	else
		s->w_max = f->cwnd;
	return flow_max((u32)((u64)f->cwnd * p->beta / 1000), 2);
}
FLOW_FN void cubic_event(struct flow *f, u32 event, struct cubic_state *s, const struct cubic_params *p)
{
	(void)p;
	if (event == FLOW_TIMEOUT) {
		cubic_reset(f, s);
	} else if (event == FLOW_TX_START && s->epoch_us && f->now_us > s->last_us) {
		s->epoch_us += f->now_us - s->last_us;
		s->last_us = f->now_us;
	}
}
#endif
