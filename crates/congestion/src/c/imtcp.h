/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* imtcp.h: Reno that measures the available bandwidth with its own data packets. Man, Hasegawa, Murata: ImTCP: TCP with an
 * inline measurement mechanism for available bandwidth, Computer Communications 29 (2006).
 *
 * Certain: the sender alone spaces its data packets, reads the trend of the delays from the ACKs, searches the available
 * bandwidth A between two bounds (Bl, Bu) with trains of several rates, has a result every few RTTs, and is Reno otherwise;
 * it cannot measure while the window is too small. From memory, medium confidence: Pathload's trend test.
 * RECONSTRUCTION (ours), "ImTCP-style" rather than ImTCP: no packets are stored. One packet with a long gap behind it
 * lets ACKs open the window (hold = n mss (1/own - 1/R), own = cwnd mss / srtt, plus two packets, at most hold_most_us), then
 * n packets leave at R. A round is three rates R_k = lo + (hi - lo) (k + 1) / 4, a train each; the split a of 0..3 with
 * the most votes (flat below, rising from a on) gives A: the middle of its quarter, hi if nothing rose (the range moves up),
 * lo if everything did (down). The next range is A +- max((hi - lo) / 4, A width / 2000).
 * The paper has several rates inside a train, linear regression and a confidence interval for the range instead.
 * PASS -> HOLD -> TRAIN -> WAIT -> PASS, by `nxt` in send and `una` in ack. A packet was sent at now - rtt. A train is
 * dropped after a loss, a timeout, an idle time, if its span was wrong by more than a quarter, or if it was slower than asked
 * and its delays flat: the window may have held it back.
 * word[0]: A of the last round [byte/s], 0: none; word[1]: how many there were. */
#ifndef IMTCP_H
#define IMTCP_H
#include "flow.h"
#define imtcp_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_EVENT | FLOW_SEND)
#define imtcp_KERNEL "pc_imtcp"
#define imtcp_PAPER "Man, Hasegawa, Murata: ImTCP: TCP with an Inline Measurement Mechanism for Available Bandwidth, 2006"
#define imtcp_BASIS "reconstruction: the idea is certain; hold packet, three rates a round, votes and the next range are ours"
#define imtcp_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(train, 20, 5, 64, "n: packets of a train", "ours; the paper has 5 and stores packets") \
	P(hold_most_us, 100000, 1000, 1000000, "longest gap before a train [us]", "ours") \
	P(pause, 1000, 0, 100000, "pause between trains [1/1000 RTT]", "ours") \
	P(width, 200, 20, 1000, "least width of the searched range [1/1000 of A]", "ours") \
	P(rise, 20, 1, 1000, "delay rise that means congestion [1/1000 of the train's time]", "ours") \
	P(late, 50, 0, 1000, "excess of the train's time above which flat delays say nothing [1/1000]", "ours") \
	P(span, 250, 10, 1000, "error of the train's time that drops it [1/1000]", "ours")
struct imtcp_params { imtcp_PARAMS(FLOW_PARAM_FIELD) };
enum { IMTCP_PASS, IMTCP_HOLD, IMTCP_TRAIN, IMTCP_WAIT };
enum { IMTCP_UNDECIDED, IMTCP_RISING, IMTCP_FLAT };
struct imtcp_state {
	u64 lo, hi, rate, result;              /* [byte/s] */
	u64 next_us, begun_us;                 /* next train, not before; when this one began */
	u64 begin, end;                        /* the train's bytes; before it `begin` is the hold packet's position */
	u64 una_first, una_last;               /* acked up to, at the first and the last sample */
	u64 sent_first_us, sent_last_us;       /* when these packets were sent */
	u32 phase, step, vote[3], retries;
	u32 samples, ups, rtt_first_us, rtt_last_us; /* of this train */
	u32 moved_us, hold_us;                 /* sum of |differences of the RTT| */
	u32 results, dropped;
};
#define IMTCP_RATE_MOST (1ull << 36)

FLOW_FN void imtcp_init(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	(void)s;
	flow_start(f, p->initial_ssthresh_bytes);
	f->word[0] = f->word[1] = 0;
}
/* the train is over, with a vote or without */
FLOW_FN void imtcp_over(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	s->phase = IMTCP_PASS;
	s->next_us = f->now_us + (u64)f->srtt_us * p->pause / 1000;
}
FLOW_FN void imtcp_range(struct imtcp_state *s, u64 lo, u64 hi, u32 mss)
{
	s->lo = flow_max64(lo, flow_max(mss, 1) * 2);
	s->hi = flow_min64(flow_max64(hi, s->lo + s->lo / 16 + 4), IMTCP_RATE_MOST);
	s->lo = flow_min64(s->lo, s->hi);
}
/* three votes: the result, and the next range */
FLOW_FN void imtcp_decide(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	u64 span = s->hi - s->lo, quarter = span / 4, a, half;
	u32 v0 = s->vote[0], v1 = s->vote[1], v2 = s->vote[2], split, best;
	u32 r0 = v0 == IMTCP_RISING, r1 = v1 == IMTCP_RISING, r2 = v2 == IMTCP_RISING;
	u32 f0 = v0 == IMTCP_FLAT, f1 = v1 == IMTCP_FLAT, f2 = v2 == IMTCP_FLAT;
	s->step = 0;
	if (!(v0 | v1 | v2))
		return;
	best = r0 + r1 + r2;
	split = 0;
	if (f0 + r1 + r2 > best) {
		best = f0 + r1 + r2;
		split = 1;
	}
	if (f0 + f1 + r2 > best) {
		best = f0 + f1 + r2;
		split = 2;
	}
	if (f0 + f1 + f2 > best)
		split = 3;
	if (split == 0) {
		a = s->lo;
		imtcp_range(s, s->lo > span / 2 ? s->lo - span / 2 : 0, s->hi - quarter, f->mss);
	} else if (split == 3) {
		a = s->hi;
		imtcp_range(s, s->lo + quarter, s->hi + span / 2 + span / 4, f->mss);
	} else {
		a = s->lo + quarter * split + quarter / 2;
		half = flow_max64(quarter, a * p->width / 2000);
		imtcp_range(s, a > half ? a - half : 0, a + half, f->mss);
	}
	s->result = a;
	s->results++;
	f->word[0] = a;
	f->word[1] = s->results;
}
/* Pathload's test on the RTTs of the train, with a least rise */
FLOW_FN u32 imtcp_trend(const struct imtcp_state *s, const struct imtcp_params *p)
{
	u64 pairs = s->samples - 1, span = s->sent_last_us - s->sent_first_us; /* at least 3 samples */
	u64 rise = s->rtt_last_us > s->rtt_first_us ? s->rtt_last_us - s->rtt_first_us : 0;
	u64 pct = (u64)s->ups * 100, pdt = rise * 100;
	if (rise * 1000 < span * p->rise)
		return IMTCP_FLAT;
	if (pct > 66 * pairs || pdt > 55ull * s->moved_us)
		return IMTCP_RISING;
	if (pct < 54 * pairs && pdt < 45ull * s->moved_us)
		return IMTCP_FLAT;
	return IMTCP_UNDECIDED;
}
FLOW_FN void imtcp_ack(struct flow *f, const struct flow_ack *a, struct imtcp_state *s, const struct imtcp_params *p)
{
	u64 asked, took, apart, sent;
	u32 good, vote = IMTCP_UNDECIDED;
	if (s->phase != IMTCP_TRAIN && s->phase != IMTCP_WAIT)
		return;
	if (f->state != FLOW_OPEN && f->state != FLOW_DISORDER) {
		s->dropped++;
		imtcp_over(f, s, p);
		return;
	}
	if (a->rtt_us && a->acked && f->una > s->begin && f->una <= s->end) {
		sent = f->now_us - a->rtt_us;
		if (!s->samples) {
			s->una_first = f->una;
			s->sent_first_us = sent;
			s->rtt_first_us = a->rtt_us;
		} else {
			s->ups += a->rtt_us > s->rtt_last_us;
			s->moved_us += a->rtt_us > s->rtt_last_us ? a->rtt_us - s->rtt_last_us : s->rtt_last_us - a->rtt_us;
		}
		s->una_last = f->una;
		s->sent_last_us = sent;
		s->rtt_last_us = a->rtt_us;
		s->samples++;
	}
	if (f->una < s->end)
		return;
	asked = flow_div((s->una_last - s->una_first) * 1000000, s->rate);
	took = s->sent_last_us > s->sent_first_us ? s->sent_last_us - s->sent_first_us : 0;
	apart = took > asked ? took - asked : asked - took;
	good = s->samples >= 3 && asked && apart * 1000 <= asked * p->span;
	if (good)
		vote = imtcp_trend(s, p);
	if (vote == IMTCP_FLAT && took * 1000 > asked * (1000 + p->late)) {
		vote = IMTCP_UNDECIDED; /* flat at a lower rate says nothing of this one */
		good = 0;
	}
	if (good || s->retries >= 3) {
		s->vote[flow_min(s->step, 2)] = vote; /* the verifier sees no bound in a remainder */
		s->retries = 0;
		s->step++;
	} else {
		s->retries++;
	}
	s->dropped += !good;
	if (s->step >= 3)
		imtcp_decide(f, s, p);
	imtcp_over(f, s, p);
}
FLOW_FN void imtcp_grow(struct flow *f, const struct flow_ack *a, struct imtcp_state *s, const struct imtcp_params *p)
{
	(void)s;
	(void)p;
	flow_reno_grow(f, a);
}
FLOW_FN void imtcp_event(struct flow *f, u32 event, struct imtcp_state *s, const struct imtcp_params *p)
{
	if (event != FLOW_RECOVERED && s->phase != IMTCP_PASS) {
		s->dropped++;
		imtcp_over(f, s, p);
	}
}
FLOW_FN void imtcp_begin(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	u64 own = flow_max64((u64)flow_min(f->cwnd, 1u << 20) * f->mss * 1000000 / flow_max(f->srtt_us, 1), 1);
	u64 bytes = (u64)p->train * f->mss, slow, fast;
	own = flow_min64(own, IMTCP_RATE_MOST);
	if (!s->hi)
		imtcp_range(s, own / 2, own * 4, f->mss);
	s->rate = flow_max64(s->lo + (s->hi - s->lo) / 4 * (s->step % 3 + 1), 1);
	slow = bytes * 1000000 / own;
	fast = bytes * 1000000 / s->rate;
	s->hold_us = 0;
	if (slow > fast)
		s->hold_us = (u32)flow_min64(slow - fast + 2ull * f->mss * 1000000 / own, p->hold_most_us);
	s->samples = s->ups = s->moved_us = 0;
	s->una_first = s->una_last = s->sent_first_us = s->sent_last_us = 0;
	s->begun_us = f->now_us;
	s->begin = f->nxt;
	s->end = f->nxt + bytes;
	s->phase = s->hold_us ? IMTCP_HOLD : IMTCP_TRAIN;
}
FLOW_FN void imtcp_send(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	f->burst = 0;
	f->pace_Bps = 0;
	if ((s->phase == IMTCP_HOLD || s->phase == IMTCP_TRAIN) &&
	    f->now_us - s->begun_us > s->hold_us + 2 * flow_div((s->end - s->begin) * 1000000, s->rate) + 1000000) {
		s->dropped++; /* nothing to send */
		imtcp_over(f, s, p);
	}
	if (s->phase == IMTCP_PASS && f->now_us >= s->next_us && f->state == FLOW_OPEN && f->srtt_us && f->mss &&
	    f->cwnd >= p->train + 2 && flow_limited(f))
		imtcp_begin(f, s, p);
	if (s->phase == IMTCP_HOLD && f->nxt > s->begin) {
		s->phase = IMTCP_TRAIN;
		s->begin = f->nxt;
		s->end = f->nxt + (u64)p->train * f->mss;
	}
	if (s->phase == IMTCP_TRAIN && f->nxt >= s->end)
		s->phase = IMTCP_WAIT;
	if (s->phase == IMTCP_HOLD) {
		f->burst = 1;
		f->pace_Bps = flow_max64((u64)f->mss * 1000000 / flow_max(s->hold_us, 1), 1);
	} else if (s->phase == IMTCP_TRAIN) {
		f->burst = 1;
		f->pace_Bps = s->rate;
	}
}
#endif
