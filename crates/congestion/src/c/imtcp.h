/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* imtcp.h: Reno that measures the available bandwidth with its own data packets. Man, Hasegawa, Murata: ImTCP: TCP with an
 * inline measurement mechanism for available bandwidth, Computer Communications 29 (2006).
 *
 * Certain: the sender alone spaces its data packets, reads the trend of delays from the ACKs, looks around the last result
 * with several rates, has a result every 1 to 4 RTTs, and is Reno otherwise; it cannot measure while the window is too small.
 * RECONSTRUCTION (ours), "ImTCP-style" rather than ImTCP: no packets are stored, no trend is voted on, no range is split.
 * One packet with a long gap behind it lets ACKs open the window, so that the whole goes at the flow's own rate cwnd mss /
 * srtt; then n packets leave, half of them at `low`, half at `high` times A (first: times the own rate), never below the own.
 * While a FIFO queue is not empty, delay d, byte b and departure t of a packet obey, whatever the spacing,
 *     C d = b - A t + constant                    (C: the link's rate)
 * and so do means over packets. With means over the train's quarters 1 to 4, r = db / dt and s = dd / dt between two:
 *     1 / C = (s34 - s12) / (r34 - r12),     A = r34 - C s34,     or r14 - C s14 if that is not clearly above r12,
 * where the queue was not empty in the first half either. It is the line of Melander, Bjorkman, Gunningberg (TOPP, 2000) on
 * delays. 1 / C is averaged over trains, A is not; an error of C counts by (r - A) / A only. If the second half's delays hardly
 * rise, A is at least its rate: that is the result then, and the next train begins above it.
 * PASS -> HOLD -> TRAIN -> WAIT -> PASS, by `nxt` in send and `una` in ack. A packet was sent at now - rtt. A train says nothing
 * after a loss, a timeout, an idle time, if a quarter has no ACK, or if it was slower than asked and its delays flat: then the
 * window may have held it back.
 * Rates are of payload, as una and the pace are: of a line of C byte/s with headers of h bytes, C mss / (mss + h).
 * word[0]: A of the last train [byte/s], 0: none; word[1]: how many there were. */
#ifndef IMTCP_H
#define IMTCP_H
#include "flow.h"
#define imtcp_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_EVENT | FLOW_SEND)
#define imtcp_KERNEL "pc_imtcp"
#define imtcp_PAPER "Man, Hasegawa, Murata: ImTCP: TCP with an Inline Measurement Mechanism for Available Bandwidth, 2006"
#define imtcp_BASIS "reconstruction: the idea is certain; hold packet, trains of two rates and their line of delays are ours"
#define imtcp_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(train, 24, 8, 64, "n: packets of a train; more in a window above 8 n, up to 64", \
	  "ours; the paper has 5 and stores packets") \
	P(share, 750, 100, 1000, "largest train, in a window; at least 8 packets [1/1000 cwnd]", "ours") \
	P(low, 1100, 1000, 4000, "rate of a train's first half [1/1000 A]", "ours") \
	P(high, 1600, 1100, 8000, "rate of its second half, at least 3/2 of the first's [1/1000 A]", "ours") \
	P(hold_most_us, 100000, 1000, 1000000, "longest gap before a train [us]", "ours") \
	P(rtt_least_us, 1000, 0, 10000000, "no trains below this RTT: gaps and delays are of the hosts' making [us]", "ours") \
	P(pause, 0, 0, 100000, "pause between trains [1/1000 RTT]", "ours") \
	P(flat, 150, 1, 1000, "A so close to the second half's rate is only a lower bound [1/1000]", "ours") \
	P(late, 100, 0, 1000, "shortfall of the second half's rate above which flat delays say nothing [1/1000]", "ours") \
	P(gain, 125, 1, 1000, "share of a new 1 / C in the average [1/1000]", "ours")
struct imtcp_params { imtcp_PARAMS(FLOW_PARAM_FIELD) };
enum { IMTCP_PASS, IMTCP_HOLD, IMTCP_TRAIN, IMTCP_WAIT };
struct imtcp_state {
	u64 result, inverse; /* A [byte/s]; 1 / C [fs/byte] */
	u64 slow, fast;      /* rates of the train's halves [byte/s] */
	u64 next_us, begun_us; /* next train, not before; when this one began */
	u64 begin, end;      /* the train's bytes; before it `begin` is the hold packet's position */
	u32 at_us[4], byte[4], delay_us[4]; /* sums over each quarter: departures and bytes from the begin, RTTs */
	u32 samples[4];
	u32 phase, hold_us;
	u32 results, extra;  /* extra: packets that a train needs beyond what ACKs free meanwhile */
	u32 bound, bends;    /* 1: A is at least the result; how often 1 / C was measured, 0: it is not known */
};
#define IMTCP_RATE_MOST (1ull << 36)
#define IMTCP_TIME_MOST (1u << 25)    /* a sum of 64 stays below 2^32 */
#define IMTCP_FLAT 100000000ull       /* slopes [1e-6] are kept with this added: 0 to 2^28 */
#define IMTCP_CLEAR 50000ull          /* a slope that is no accident */

FLOW_FN void imtcp_init(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	(void)s;
	flow_start(f, p->initial_ssthresh_bytes);
	f->word[0] = f->word[1] = 0;
}
/* the train is over, with a result or without */
FLOW_FN void imtcp_over(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	s->phase = IMTCP_PASS;
	s->next_us = f->now_us + (u64)f->srtt_us * p->pause / 1000;
}
/* mean of a quarter in sixteenths; a sum is below 2^32 */
FLOW_FN u64 imtcp_mean(u32 sum, u32 n) { return flow_div((u64)sum << 4, n); }

/* rate from quarter i to quarter k; 0: departures are not in order */
FLOW_FN u64 imtcp_rate(struct flow *f, const struct imtcp_state *s, u32 i, u32 k)
{
	u64 t0 = imtcp_mean(s->at_us[i], s->samples[i]), t1 = imtcp_mean(s->at_us[k], s->samples[k]);
	u64 b0 = imtcp_mean(s->byte[i], s->samples[i]), b1 = imtcp_mean(s->byte[k], s->samples[k]), rate = 0;
	if (t1 > t0 && b1 > b0)
		rate = flow_min64(flow_div((b1 - b0) * 1000000, t1 - t0), IMTCP_RATE_MOST); /* 2^36 * 2^20 */
	return flow_forget(f, rate);
}
/* slope of the delays from quarter i to quarter k */
FLOW_FN u64 imtcp_slope(struct flow *f, const struct imtcp_state *s, u32 i, u32 k)
{
	u64 t0 = imtcp_mean(s->at_us[i], s->samples[i]), t1 = imtcp_mean(s->at_us[k], s->samples[k]);
	u64 d0 = imtcp_mean(s->delay_us[i], s->samples[i]), d1 = imtcp_mean(s->delay_us[k], s->samples[k]);
	u64 gap = flow_forget(f, d1 >= d0 ? d1 - d0 : d0 - d1);
	u64 slope = flow_forget(f, flow_min64(flow_div(gap * 1000000, t1 > t0 ? t1 - t0 : 0), IMTCP_FLAT)); /* 2^36 * 2^20 */
	return flow_forget(f, d1 >= d0 ? IMTCP_FLAT + slope : IMTCP_FLAT - slope);
}
/* r - C s; a falling delay raises it by r / 4 at most */
FLOW_FN u64 imtcp_free(struct flow *f, const struct imtcp_state *s, u64 rate, u64 slope)
{
	u64 off = flow_forget(f, slope >= IMTCP_FLAT ? slope - IMTCP_FLAT : IMTCP_FLAT - slope);
	off = flow_div(off * 1000000000, s->inverse); /* 2^28 * 2^30 */
	if (slope >= IMTCP_FLAT)
		return flow_forget(f, rate - flow_min64(off, rate));
	return flow_forget(f, rate + flow_min64(off, rate / 4));
}
/* 1 / C from the bend between the halves; C is from once to 16 times what the train came out with, r14 / (1 + s14) */
FLOW_FN void imtcp_link(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p, u64 r12, u64 s12, u64 r34,
			u64 s34, u64 r14, u64 s14)
{
	u64 now = flow_div(s34 > s12 ? (s34 - s12) * 1000000000 : 0, r34 - r12), gain, most; /* 2^28 * 2^30 */
	now = flow_forget(f, flow_min64(now, 1ull << 50));
	gain = flow_forget(f, flow_max(p->gain, 1000 / (s->bends + 1)));
	most = flow_forget(f, flow_div((s14 + 1000000 - flow_min64(s14, IMTCP_FLAT)) * 1000000000, r14));
	s->inverse = flow_min64(flow_max64((s->inverse * (1000 - gain) + now * gain) / 1000, most / 16), most);
	s->inverse = flow_forget(f, flow_max64(flow_min64(s->inverse, 1ull << 50), 1));
	s->bends = flow_min(s->bends + 1, 1000);
}
/* all ACKs of the train are in */
FLOW_FN void imtcp_judge(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	u64 r12 = imtcp_rate(f, s, 0, 1), r34 = imtcp_rate(f, s, 2, 3), r14 = imtcp_rate(f, s, 0, 3);
	u64 s12 = imtcp_slope(f, s, 0, 1), s34 = imtcp_slope(f, s, 2, 3), s14 = imtcp_slope(f, s, 0, 3), a;
	int queued; /* in the first half too; a first 1 / C asks for a clear rise in the second */
	if (!s->samples[0] || !s->samples[1] || !s->samples[2] || !s->samples[3] || !r12 || !r34 || !r14)
		return;
	a = flow_forget(f, s->bends ? imtcp_free(f, s, r34, s34) : r34);
	queued = s->bends ? s12 > IMTCP_FLAT + IMTCP_CLEAR || a <= r12 : s34 > IMTCP_FLAT + IMTCP_CLEAR;
	queued = (int)flow_forget(f, (u64)queued);
	if (queued && r34 >= r12 + r12 / 4) {
		imtcp_link(f, s, p, r12, s->bends ? s12 : flow_max64(s12, IMTCP_FLAT), r34, s34, r14, s14);
		a = imtcp_free(f, s, r34, s34);
	}
	a = flow_forget(f, a);
	s->bound = (u32)flow_forget(f, a * 1000 > r34 * (1000 - p->flat));
	if (s->bound && r34 * 1000 < s->fast * (1000 - p->late))
		return; /* flat at a lower rate says nothing of this one */
	if (a <= r12 + flow_div(r12 * 3 * f->mss, s->end - s->begin)) /* noise is as a packet in n; 2^36 * 2^18 */
		a = s->bends ? imtcp_free(f, s, r14, s14) : r14;
	a = flow_forget(f, a);
	s->result = flow_min64(flow_max64(a, flow_max64(r12 / 4, 1)), IMTCP_RATE_MOST);
	s->results++;
	f->word[0] = s->result;
	f->word[1] = s->results;
}
FLOW_FN void imtcp_ack(struct flow *f, const struct flow_ack *a, struct imtcp_state *s, const struct imtcp_params *p)
{
	u64 at;
	u32 quarter;
	if (s->phase != IMTCP_TRAIN && s->phase != IMTCP_WAIT)
		return;
	if (f->state != FLOW_OPEN && f->state != FLOW_DISORDER) {
		imtcp_over(f, s, p);
		return;
	}
	if (a->rtt_us && a->acked && f->una > s->begin && f->una <= s->end) {
		quarter = (u32)flow_div((f->una - s->begin - 1) * 4, s->end - s->begin) & 3;
		at = f->now_us - s->begun_us;
		at -= flow_min64(at, a->rtt_us);
		s->at_us[quarter] += (u32)flow_min64(at, IMTCP_TIME_MOST);
		s->byte[quarter] += (u32)(f->una - s->begin);
		s->delay_us[quarter] += flow_min(a->rtt_us, IMTCP_TIME_MOST);
		s->samples[quarter]++;
	}
	if (f->una < s->end)
		return;
	imtcp_judge(f, s, p);
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
		imtcp_over(f, s, p);
	}
}
/* packets of a train in this window, a multiple of 4; 0: it is too small */
FLOW_FN u32 imtcp_packets(const struct flow *f, const struct imtcp_params *p)
{
	u32 n = flow_min(flow_max(f->cwnd / 8, p->train), 64);
	n = flow_max(flow_min(n, (u32)((u64)f->cwnd * p->share / 1000)) & ~3u, 8);
	return f->cwnd < 12 ? 0 : n;
}
FLOW_FN void imtcp_begin(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p, u32 n)
{
	u32 w = flow_limited(f) ? f->cwnd : flow_min(f->cwnd, f->in_flight + 1);
	u64 own = flow_max64((u64)flow_min(w, 1u << 20) * f->mss * 1000000 / flow_max(f->srtt_us, 1), 2ull * f->mss);
	u64 bytes = (u64)n * f->mss, base, acked, most;
	most = flow_min64(125000ull * f->mss, IMTCP_RATE_MOST); /* 8 us a packet: clocks count microseconds */
	own = flow_min64(own, most);
	base = s->result ? s->result : own;
	s->slow = flow_min64(flow_max64(base * p->low / 1000, own), most);
	s->fast = flow_min64(flow_max64(base * p->high / 1000, s->slow + s->slow / 2), most);
	/* what ACKs free while the train leaves; rates are at least own: acked <= bytes */
	acked = flow_min64(flow_div(bytes / 2 * own, s->slow) + flow_div(bytes / 2 * own, s->fast), bytes); /* 2^22 * 2^36 */
	s->hold_us = (u32)flow_min64((bytes - acked + 2ull * f->mss) * 1000000 / own, p->hold_most_us);
	s->extra = (u32)flow_div(bytes - acked, f->mss) + 2;
	s->at_us[0] = s->at_us[1] = s->at_us[2] = s->at_us[3] = 0;
	s->byte[0] = s->byte[1] = s->byte[2] = s->byte[3] = 0;
	s->delay_us[0] = s->delay_us[1] = s->delay_us[2] = s->delay_us[3] = 0;
	s->samples[0] = s->samples[1] = s->samples[2] = s->samples[3] = 0;
	s->begun_us = f->now_us;
	s->begin = f->nxt;
	s->end = f->nxt + bytes;
	s->phase = IMTCP_HOLD;
}
FLOW_FN void imtcp_send(struct flow *f, struct imtcp_state *s, const struct imtcp_params *p)
{
	u32 n;
	u64 bytes = s->end - s->begin;
	f->burst = 0;
	f->pace_Bps = 0;
	if ((s->phase == IMTCP_HOLD || s->phase == IMTCP_TRAIN) &&
	    f->now_us - s->begun_us > s->hold_us + 2 * flow_div(bytes * 1000000, s->slow) + 1000000) {
		imtcp_over(f, s, p);
	}
	if (s->phase == IMTCP_PASS && f->now_us >= s->next_us && f->state == FLOW_OPEN && f->mss &&
	    f->srtt_us >= flow_max(p->rtt_least_us, 1) &&
	    (flow_limited(f) || f->in_flight * 5 >= f->cwnd * 2)) {
		n = imtcp_packets(f, p);
		if (n)
			imtcp_begin(f, s, p, n);
	}
	if (s->phase == IMTCP_HOLD && f->nxt > s->begin) {
		s->phase = IMTCP_TRAIN;
		s->begin = f->nxt;
		s->end = f->nxt + bytes;
	}
	if (s->phase == IMTCP_TRAIN && f->nxt >= s->end)
		s->phase = IMTCP_WAIT;
	if (s->phase == IMTCP_HOLD) {
		f->burst = 1;
		f->pace_Bps = flow_max64((u64)f->mss * 1000000 / flow_max(s->hold_us, 1), 1);
	} else if (s->phase == IMTCP_TRAIN) {
		f->burst = 1;
		f->pace_Bps = f->nxt - s->begin < bytes / 2 ? s->slow : s->fast;
	}
}
#endif
