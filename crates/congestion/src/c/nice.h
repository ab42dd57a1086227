/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* nice.h: TCP Nice, a background transport: Vegas, halving on early congestion, windows below one packet.
 * Venkataramani, Kokku, Dahlin: TCP Nice: a mechanism for background transfers, OSDI 2002, section 4.
 *
 *   numCong: packets of the round with rtt > (1 - t) minRTT + t maxRTT; numCong > f W: W /= 2; else Vegas:
 *   diff = W (rtt - minRTT) / rtt; below alpha W += 1, above beta W -= 1; slow start doubles W in every other round and ends
 *   above gamma
 *   W below 1: one packet every `parts` RTTs, by pacing; loss: Reno
 * Certain: the detector, the reaction, windows below one. From memory, medium confidence: t = 0.1, f = 0.5, least
 * window 1/48, Vegas's slow start. OURS: W in f W is the packets acked in the round; the round's smallest RTT in Vegas;
 * no signal while maxRTT - minRTT is below floor_us, nor from a queue below least_us, which a flow makes by itself;
 * maxRTT is that of the last one to two windows of 30 s; below one packet the window doubles after a round without a
 * signal. Slow start has no signals, since its own bursts wait: it ends when the round's smallest RTT, of 8 packets or
 * the window, is more than least_us above minRTT and diff above gamma; then W = W minRTT / rtt, as in Linux's Vegas,
 * and what was sent before that is not judged. A receiver that acknowledges pairs (flow_pairs.h) holds the ACK of a lone
 * packet back: from such a receiver an ACK of one packet gives minRTT only, and a window of one grows by one after a round
 * of them; so it does not fall below one there. */
#ifndef NICE_H
#define NICE_H
#include "flow_pairs.h"
#define nice_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SEND)
#define nice_KERNEL "pc_nice"
#define nice_PAPER "Venkataramani, Kokku, Dahlin: TCP Nice: A Mechanism for Background Transfers, OSDI 2002, section 4"
#define nice_BASIS "certain, except for constants from memory, the ageing of maxRTT, slow start and the way back above one packet"
#define nice_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(threshold, 100, 1, 900, "t: queue that counts as congestion [1/1000 of the full one]", "OSDI 2002, from memory: 0.1") \
	P(fraction, 500, 1, 1000, "f: packets that must see it in a round [1/1000]", "OSDI 2002, from memory: 0.5") \
	P(parts_most, 48, 1, 1024, "least window is 1/parts_most packet", "OSDI 2002, from memory: 1/48") \
	P(alpha, 1, 0, 100, "Vegas: grow below so many packets queued", "Vegas: 1") \
	P(beta, 3, 0, 100, "Vegas: shrink above so many packets queued", "Vegas: 3") \
	P(gamma, 1, 0, 100, "Vegas: slow start ends above so many packets queued", "Vegas: 1") \
	P(floor_us, 1000, 0, 1000000, "least maxRTT - minRTT that says anything [us]", "ours") \
	P(least_us, 5000, 0, 1000000, "a smaller queue is no signal [us]", "ours") \
	P(max_age_s, 30, 1, 3600, "maxRTT is forgotten after one to two times this [s]", "ours")
struct nice_params { nice_PARAMS(FLOW_PARAM_FIELD) };
struct nice_state {
	u64 round_end, aged_us;
	u32 min_us, max_us, old_max_us; /* maxRTT of this window of time and of the last */
	u32 round_us, seen, cong;       /* this round: smallest RTT, packets, packets with a signal */
	u32 done_us, done_seen, done_cong, ended; /* the last round, until grow has judged it */
	u32 parts, hold;                /* window below one packet: 1 / parts, else 1; this round neither doubles nor is judged */
	struct flow_pairs pairs;
};

FLOW_FN void nice_init(struct flow *f, struct nice_state *s, const struct nice_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->round_end = f->nxt;
	s->aged_us = f->now_us;
	s->min_us = s->max_us = s->old_max_us = f->srtt_us;
	s->parts = 1;
}
FLOW_FN void nice_ack(struct flow *f, const struct flow_ack *a, struct nice_state *s, const struct nice_params *p)
{
	u32 rtt = a->rtt_us, most, held = (u32)flow_pairs_held(&s->pairs, f, a);
	if (f->una > s->round_end) {
		s->round_end = f->nxt;
		s->done_us = s->round_us;
		s->done_seen = s->seen;
		s->done_cong = s->cong;
		s->ended = 1;
		s->round_us = s->seen = s->cong = 0;
	}
	if (f->now_us - s->aged_us > (u64)p->max_age_s * 1000000) {
		s->aged_us = f->now_us;
		s->old_max_us = s->max_us;
		s->max_us = rtt;
	}
	if (rtt && (!s->min_us || rtt < s->min_us))
		s->min_us = rtt;
	if (held)
		return; /* the receiver may have waited for another packet */
	s->seen += a->acked;
	if (!rtt)
		return;
	s->max_us = flow_max(s->max_us, rtt);
	if (!s->round_us || rtt < s->round_us)
		s->round_us = rtt;
	most = flow_max(s->max_us, s->old_max_us);
	if (most - s->min_us >= flow_max(p->floor_us, 1) && rtt - s->min_us > p->least_us &&
	    (u64)(rtt - s->min_us) * 1000 > (u64)(most - s->min_us) * p->threshold)
		s->cong += a->acked;
}
/* slow start: doubles in every other round; ends when the round's first packets, those before its own bursts, waited */
FLOW_FN void nice_slow(struct flow *f, const struct flow_ack *a, struct nice_state *s, const struct nice_params *p)
{
	u32 rtt = s->round_us;
	if (s->ended)
		s->hold ^= 1;
	s->ended = 0;
	if (s->seen >= flow_min(f->cwnd, 8) && rtt > s->min_us && rtt - s->min_us > p->least_us &&
	    (u64)f->cwnd * (rtt - s->min_us) > (u64)p->gamma * rtt) { /* < 2^62 */
		f->cwnd = flow_min(flow_max((u32)flow_div((u64)f->cwnd * s->min_us, rtt), 2), f->cwnd_max);
		f->ssthresh = f->cwnd;
		f->cwnd_cnt = 0;
		s->round_end = f->nxt;
		s->round_us = s->seen = s->cong = 0;
		s->hold = 1;
	} else if (!s->hold && flow_limited(f)) {
		flow_slow_start(f, a->acked);
	}
}
FLOW_FN void nice_grow(struct flow *f, const struct flow_ack *a, struct nice_state *s, const struct nice_params *p)
{
	u64 queued; /* packets * done_us */
	if (s->parts == 1 && flow_slow(f)) {
		nice_slow(f, a, s, p);
		return;
	}
	if (!s->ended)
		return;
	s->ended = 0;
	if (s->hold) { /* its packets were sent in slow start */
		s->hold = 0;
		return;
	}
	if ((u64)s->done_cong * 1000 > (u64)s->done_seen * p->fraction) {
		if (f->cwnd > 1)
			f->cwnd >>= 1;
		else
			s->parts = flow_min(s->parts * 2, p->parts_most);
		f->ssthresh = flow_min(f->ssthresh, f->cwnd);
		f->cwnd_cnt = 0;
		return;
	}
	if (s->parts > 1) {
		s->parts >>= 1;
		return;
	}
	queued = s->done_us ? (u64)f->cwnd * (s->done_us - s->min_us) : 0; /* < 2^62 */
	if (s->pairs.score && f->cwnd == 1) {
		f->cwnd = flow_min(2, f->cwnd_max);
	} else if (s->done_us && queued > (u64)p->beta * s->done_us) {
		f->cwnd = flow_max(f->cwnd - 1, 1);
		f->ssthresh = flow_min(f->ssthresh, f->cwnd);
	} else if (s->done_us && queued < (u64)p->alpha * s->done_us && flow_limited(f)) {
		f->cwnd = flow_min(f->cwnd + 1, f->cwnd_max);
	}
}
FLOW_FN void nice_send(struct flow *f, struct nice_state *s, const struct nice_params *p)
{
	(void)p;
	f->burst = 0;
	f->pace_Bps = 0;
	if (s->parts > 1 && f->srtt_us) {
		f->burst = 1;
		f->pace_Bps = flow_max64((u64)f->mss * 1000000 / ((u64)f->srtt_us * s->parts), 1);
	}
}
#endif
