/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* bbr3_model.h: what bbr3.h knows of its path: bandwidth, round trip, aggregation, and the bounds that losses and marks set.
 * draft-ietf-ccwg-bbr, sections 2 (constants) and 5.5 (Updating Network Path Model Parameters). Names are the draft's:
 * hi is its long-term bound, lo its short-term one. */
#ifndef BBR3_MODEL_H
#define BBR3_MODEL_H
#include "bbr3_rate.h"

#define bbr3_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(startup_pacing, 277, 100, 1000, "pacing gain of Startup [%]", "draft section 2.5: 2.77") \
	P(drain_pacing, 50, 10, 100, "of Drain [%]", "draft: 0.5") \
	P(down_pacing, 90, 10, 100, "of ProbeBW_DOWN [%]", "draft: 0.9") \
	P(up_pacing, 125, 100, 1000, "of ProbeBW_UP [%]", "draft: 1.25") \
	P(cwnd_gain, 200, 100, 1000, "window gain [% of bandwidth times least RTT]", "draft: 2") \
	P(up_cwnd, 225, 100, 1000, "of ProbeBW_UP [%]", "draft: 2.25") \
	P(margin, 1, 0, 50, "paces below the bandwidth by [%]", "draft: 1") \
	P(loss, 20, 1, 1000, "losses of a round that are too many [1/1000]", "draft: 2 %") \
	P(beta, 70, 1, 100, "least factor of a reduction by loss [%]", "draft: 0.7") \
	P(ecn_beta, 85, 1, 100, "factor of the volume in flight for a round with marks [%]", "ours, as RFC 8511; the draft has no response") \
	P(headroom, 15, 0, 90, "of inflight_hi left free in ProbeBW_CRUISE [%]", "draft: 0.15") \
	P(cwnd_least, 4, 1, 1000, "least window [packet]", "draft: 4") \
	P(full_growth, 125, 101, 1000, "a rate that grows less in a round has a full path [%]", "draft: 1.25") \
	P(full_rounds, 3, 1, 100, "so many rounds of them", "draft: 3") \
	P(full_losses, 6, 1, 200, "ACKs that tell of losses in a round that may end Startup", "draft: 6 sequence ranges") \
	P(wait_ms, 2000, 1, 60000, "longest time between bandwidth probes, least draw [ms]", "draft: 2 s") \
	P(wait_random_ms, 1000, 1, 60000, "and what is drawn on top [ms]", "draft: up to 1 s") \
	P(wait_rounds, 63, 1, 1000, "rounds after which the bandwidth is probed at the latest", "draft: 63") \
	P(min_rtt_ms, 10000, 1, 600000, "memory of the least RTT [ms]", "draft: 10 s") \
	P(rtt_probe_ms, 5000, 1, 600000, "time between probes of the RTT [ms]", "draft: 5 s") \
	P(rtt_probe_hold_ms, 200, 1, 10000, "length of one [ms]", "draft: 200 ms") \
	P(rtt_probe_cwnd, 50, 1, 100, "window gain in it [%]", "draft: 0.5") \
	P(extra_rounds, 10, 2, 100, "memory of aggregated ACKs [round], half to all of it", "draft: 10")
struct bbr3_params { bbr3_PARAMS(FLOW_PARAM_FIELD) };

enum { BBR3_STARTUP, BBR3_DRAIN, BBR3_DOWN, BBR3_CRUISE, BBR3_REFILL, BBR3_UP, BBR3_PROBE_RTT };
enum { BBR3_ACKS_INIT, BBR3_ACKS_REFILLING, BBR3_ACKS_STARTING, BBR3_ACKS_FEEDBACK, BBR3_ACKS_STOPPING };
#define BBR3_NONE 0x7fffffffu /* no bound on the volume; no RTT */
#define BBR3_RTT_MOST 0xfffffffu /* 268 s */
#define BBR3_NO_RATE ((u64)1 << 62)

struct bbr3_state {
	u64 bw_hi[2], bw_lo, bw, bw_latest, full_bw; /* rates; bw_hi: of the last cycle and of this one */
	u64 pace_Bps, undo_bw_lo;
	u64 cycle_us, min_us, probe_us, done_us, extra_us; /* times; done: end of the RTT probe, 0: not reached */
	u32 phase, cwnd, prior_cwnd;
	u32 min_rtt_us, probe_rtt_us;
	u32 round_us, loss_round_us, rounds, rounds_since_up, drain_round; /* a round ends with what left at round_us */
	u32 hi, lo, inflight_latest, undo_lo, undo_hi;
	u32 up_acked, up_per, wait_us, seed;
	u32 extra[2], extra_delivered, extra_round, first, start;
	u8 acks, full_count, full_now, full_reached, round_start, loss_round_start, loss_in_round, marked, loss_acks;
	u8 probing, up_rounds, too_high, precaution, idle, expired, round_done, undo_phase, reduces, timed, pad[5];
	struct bbr3_rate rate;
};
#define BBR3_NO_PHASE 255

/* ---- bandwidth and volume ---- */
FLOW_FN u64 bbr3_max_bw(const struct bbr3_state *s) { return flow_max64(s->bw_hi[0], s->bw_hi[1]); }
FLOW_FN u64 bbr3_cut(u64 x, u32 percent) { return x * percent / 100; } /* x < 2^50 */

/* Bytes that leave at once: a millisecond's, 64 KB at most, two packets at least; in packets. */
FLOW_FN u32 bbr3_quantum(const struct flow *f, const struct bbr3_state *s)
{
	return flow_max((u32)flow_div(flow_min64(s->pace_Bps / 1000, 65536), f->mss), 2);
}
/* Bandwidth times least RTT times a gain [packet], rounded up. */
FLOW_FN u32 bbr3_bdp(const struct bbr3_state *s, u64 bw, u32 percent)
{
	u64 volume;
	if (s->min_rtt_us == BBR3_NONE)
		return s->first;
	volume = bw * s->min_rtt_us >> (BBR3_UNIT - 16); /* bw <= 2^36, RTT < 2^28; the shift leaves 2^50 */
	return (u32)flow_min64((volume * percent / 100 + 0xffff) >> 16, 1u << 28);
}
/* What offloads and delayed ACKs need on top of a volume. */
FLOW_FN u32 bbr3_budget(const struct flow *f, const struct bbr3_state *s, const struct bbr3_params *p, u32 volume)
{
	volume = flow_max(flow_max(volume, 3 * bbr3_quantum(f, s)), p->cwnd_least);
	return s->phase == BBR3_UP ? volume + 2 : volume;
}
FLOW_FN u32 bbr3_inflight(const struct flow *f, const struct bbr3_state *s, const struct bbr3_params *p, u64 bw)
{
	return bbr3_budget(f, s, p, bbr3_bdp(s, bw, 100));
}
FLOW_FN u32 bbr3_headroom(const struct bbr3_state *s, const struct bbr3_params *p)
{
	u32 room;
	if (s->hi == BBR3_NONE)
		return BBR3_NONE;
	room = flow_max((u32)bbr3_cut(s->hi, p->headroom), 1);
	return flow_max(s->hi - flow_min(room, s->hi), p->cwnd_least);
}
FLOW_FN u32 bbr3_target(const struct bbr3_state *s) { return flow_min(bbr3_bdp(s, s->bw, 100), s->cwnd); }
FLOW_FN u32 bbr3_probe_rtt_cwnd(const struct bbr3_state *s, const struct bbr3_params *p)
{
	return flow_max(bbr3_bdp(s, s->bw, p->rtt_probe_cwnd), p->cwnd_least);
}
FLOW_FN void bbr3_start_round(const struct flow *f, struct bbr3_state *s) { s->round_us = (u32)f->now_us; }
FLOW_FN void bbr3_reset_full(struct bbr3_state *s, u64 bw)
{
	s->full_bw = bw;
	s->full_count = s->full_now = 0;
}
FLOW_FN void bbr3_reset_short(struct bbr3_state *s)
{
	s->bw_lo = BBR3_NO_RATE;
	s->lo = BBR3_NONE;
}
FLOW_FN void bbr3_reset_signals(struct bbr3_state *s)
{
	s->loss_in_round = s->marked = 0;
	s->bw_latest = 0;
	s->inflight_latest = 0;
}
FLOW_FN int bbr3_in_probe_bw(const struct bbr3_state *s) { return s->phase >= BBR3_DOWN && s->phase <= BBR3_UP; }
FLOW_FN int bbr3_accelerates(const struct bbr3_state *s)
{
	return s->phase == BBR3_STARTUP || s->phase == BBR3_REFILL || s->phase == BBR3_UP;
}

/* ---- pace ---- */
FLOW_FN u64 bbr3_Bps(const struct flow *f, u64 bw, u32 percent, u32 margin)
{
	u64 Bps = ((bw * flow_min(f->mss, 1u << 16) >> 12) * 1000000) >> (BBR3_UNIT - 12); /* <= 2^60, then <= 2^42 */
	return flow_max64(Bps * percent * (100 - margin) / 10000, 1); /* < 2^59 */
}
FLOW_FN void bbr3_first_pace(const struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	u32 rtt = f->srtt_us ? f->srtt_us : 1000;
	u64 bw = flow_min64(((u64)flow_min(f->cwnd, 1u << 30) << BBR3_UNIT) / rtt, BBR3_MOST);
	s->pace_Bps = bbr3_Bps(f, bw, p->startup_pacing, 0);
}
FLOW_FN void bbr3_pace(const struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, u32 percent)
{
	u64 Bps = bbr3_Bps(f, s->bw, percent, p->margin);
	if (s->full_reached || Bps > s->pace_Bps)
		s->pace_Bps = Bps;
}

/* ---- what each ACK teaches ---- */
FLOW_FN void bbr3_latest(const struct flow *f, struct bbr3_state *s, const struct bbr3_sample *o)
{
	s->bw_latest = flow_max64(s->bw_latest, o->rate);
	s->inflight_latest = flow_max(s->inflight_latest, o->delivered);
	s->loss_round_start = o->timed && !bbr3_before(o->sent_us, s->loss_round_us);
	if (s->loss_round_start)
		s->loss_round_us = (u32)f->now_us;
	s->round_start = o->timed && !bbr3_before(o->sent_us, s->round_us);
	if (s->round_start) {
		bbr3_start_round(f, s);
		s->rounds++;
		s->rounds_since_up++;
	}
	if (o->rate && (o->rate >= bbr3_max_bw(s) || !o->starved))
		s->bw_hi[1] = flow_max64(s->bw_hi[1], o->rate);
}
FLOW_FN void bbr3_next_cycle(struct bbr3_state *s)
{
	if (!s->bw_hi[1])
		return; /* no sample in this cycle: the old ones stay */
	s->bw_hi[0] = s->bw_hi[1];
	s->bw_hi[1] = 0;
}
/* Once a round: while it does not probe, losses bring the model down to what was delivered, marks by a factor. */
FLOW_FN void bbr3_adapt_lower(struct bbr3_state *s, const struct bbr3_params *p)
{
	if (!s->loss_round_start)
		return;
	if ((s->loss_in_round || s->marked) && !bbr3_accelerates(s)) {
		u32 lo = s->lo == BBR3_NONE ? s->cwnd : s->lo;
		u64 bw = s->bw_lo == BBR3_NO_RATE ? bbr3_max_bw(s) : s->bw_lo;
		s->bw_lo = flow_max64(s->bw_latest, bbr3_cut(bw, p->beta));
		if (s->marked)
			s->lo = (u32)bbr3_cut(flow_min(lo, s->inflight_latest), p->ecn_beta);
		else
			s->lo = flow_max(s->inflight_latest, (u32)bbr3_cut(lo, p->beta));
	}
	s->loss_in_round = s->marked = 0;
}
/* ACKs that come in lumps: how much more than the bandwidth gives. */
FLOW_FN void bbr3_aggregation(const struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	u64 passed = flow_min64(f->now_us - s->extra_us, 1u << 27);
	u64 expected = s->bw * passed >> BBR3_UNIT; /* <= 2^63 */
	if (s->extra_delivered <= expected) {
		s->extra_delivered = 0;
		s->extra_us = f->now_us;
		expected = 0;
	}
	s->extra_delivered = flow_min(s->extra_delivered + flow_min(o->newly, 1u << 28), 1u << 28);
	if (s->round_start && s->rounds - s->extra_round >= (s->full_reached ? p->extra_rounds / 2 : 1)) {
		s->extra_round = s->rounds;
		s->extra[0] = s->extra[1];
		s->extra[1] = 0;
	}
	s->extra[1] = flow_max(s->extra[1], flow_min((u32)flow_min64(s->extra_delivered - expected, 1u << 28), s->cwnd));
}
FLOW_FN void bbr3_full(struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	if (s->full_now || !s->round_start || o->starved || !o->rate)
		return;
	if (o->rate >= bbr3_cut(s->full_bw, p->full_growth)) {
		bbr3_reset_full(s, o->rate);
		return;
	}
	if (++s->full_count >= p->full_rounds)
		s->full_now = s->full_reached = 1;
}
FLOW_FN void bbr3_min_rtt(const struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, u32 rtt_us)
{
	s->expired = f->now_us > s->probe_us + (u64)p->rtt_probe_ms * 1000;
	if (rtt_us && (rtt_us < s->probe_rtt_us || s->expired)) {
		s->probe_rtt_us = flow_min(rtt_us, BBR3_RTT_MOST);
		s->probe_us = f->now_us;
	}
	if (s->probe_rtt_us < s->min_rtt_us || f->now_us > s->min_us + (u64)p->min_rtt_ms * 1000) {
		s->min_rtt_us = s->probe_rtt_us;
		s->min_us = s->probe_us;
	}
}
#endif
