/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* bbr3.h: BBR version 3: paces at the bandwidth that it has measured and keeps about as much in flight as the path holds.
 * draft-ietf-ccwg-bbr (August 2026), section 5. Cardwell, Swett, Beshay: BBR Congestion Control.
 *
 *   Startup doubles the rate each round until it grows no more (3 rounds) or 2 % of a round are lost; Drain empties the queue
 *   ProbeBW: DOWN below the bandwidth until the queue is empty, CRUISE at it, after 2 to 3 s or as many rounds as packets are
 *   in flight (63 at most) REFILL for a round and UP above it until it grows no more or 2 % of a round are lost
 *   ProbeRTT: half of the window for 200 ms, 5 s after the last least RTT
 * Certain: all of that. What a controller of TCP is not told, and what it may not set, makes it OURS: samples of the rate
 * (bbr3_rate.h); a round is by the times at which packets left; the sequence ranges lost that may end Startup are ACKs
 * that tell of losses; the quantum is TCP's (a millisecond's packets, too); TCP's window counts after a timeout until all is
 * repaired, and after silence until the next ACK; random numbers are made of the clock. The draft asks for a response to ECN and gives none: a round with marks counts as too many losses. */
#ifndef BBR3_H
#define BBR3_H
#include "bbr3_model.h"
#define bbr3_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH | FLOW_UNDO | FLOW_EVENT | FLOW_SEND)
#define bbr3_KERNEL "pc_bbr3"
#define bbr3_PAPER "Cardwell, Swett, Beshay: BBR Congestion Control, draft-ietf-ccwg-bbr, August 2026, section 5"
#define bbr3_BASIS "certain, except for how rates are sampled, ranges lost in Startup and the response to ECN"

FLOW_FN u32 bbr3_random(struct flow *f, struct bbr3_state *s, u32 below)
{
	s->seed = (s->seed ^ (u32)f->now_us ^ f->delivered) * 1664525u + 1013904223u; /* Knuth's */
	return (s->seed >> 8) % (below + 1);
}

/* ---- phases ---- */
FLOW_FN void bbr3_enter_drain(struct bbr3_state *s)
{
	s->phase = BBR3_DRAIN;
	s->drain_round = s->rounds;
}
FLOW_FN void bbr3_enter_down(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	bbr3_reset_signals(s);
	s->up_per = BBR3_NONE;
	s->rounds_since_up = bbr3_random(f, s, 1);
	s->wait_us = p->wait_ms * 1000 + bbr3_random(f, s, p->wait_random_ms * 1000);
	s->cycle_us = f->now_us;
	s->acks = BBR3_ACKS_STOPPING;
	bbr3_start_round(f, s);
	s->phase = BBR3_DOWN;
}
FLOW_FN void bbr3_enter_refill(const struct flow *f, struct bbr3_state *s)
{
	bbr3_reset_short(s);
	s->up_rounds = 0;
	s->up_acked = 0;
	s->precaution = 0;
	s->acks = BBR3_ACKS_REFILLING;
	bbr3_start_round(f, s);
	s->phase = BBR3_REFILL;
}
FLOW_FN void bbr3_raise_slope(struct bbr3_state *s)
{
	u32 growth = 1u << (s->up_rounds & 31);
	if (s->up_rounds < 30)
		s->up_rounds++;
	s->up_per = flow_max(s->cwnd / growth, 1);
}
FLOW_FN void bbr3_enter_up(const struct flow *f, struct bbr3_state *s, u64 rate)
{
	s->acks = BBR3_ACKS_STARTING;
	bbr3_start_round(f, s);
	bbr3_reset_full(s, rate);
	s->phase = BBR3_UP;
	bbr3_raise_slope(s);
}
FLOW_FN void bbr3_leave_probe_rtt(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	s->probe_us = f->now_us;
	s->cwnd = flow_max(s->cwnd, s->prior_cwnd);
	bbr3_reset_short(s);
	if (s->full_reached) {
		bbr3_enter_down(f, s, p);
		s->phase = BBR3_CRUISE; /* the queue is empty already */
	} else {
		s->phase = BBR3_STARTUP;
	}
}

/* ---- losses ---- */
FLOW_FN int bbr3_too_high(const struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	return s->marked || (u64)o->lost * 1000 > (u64)o->in_flight * p->loss;
}
FLOW_FN void bbr3_save(struct bbr3_state *s)
{
	s->prior_cwnd = s->phase == BBR3_PROBE_RTT ? flow_max(s->prior_cwnd, s->cwnd) : s->cwnd;
	s->undo_phase = BBR3_NO_PHASE;
	s->undo_bw_lo = s->bw_lo;
	s->undo_lo = s->lo;
	s->undo_hi = s->hi;
}
/* How much was in flight when losses became too many [packet]. */
FLOW_FN u32 bbr3_at_loss(const struct bbr3_params *p, const struct bbr3_sample *o)
{
	u64 before = o->in_flight ? o->in_flight - 1 : 0, lost = o->lost ? o->lost - 1 : 0;
	u64 allowed = before * p->loss, had = lost * 1000;
	return (u32)(before + (allowed > had ? (allowed - had) / (1000 - flow_min(p->loss, 999)) : 0));
}
FLOW_FN void bbr3_handle_too_high(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	s->too_high = 1;
	s->probing = 0;
	if (!o->starved)
		s->hi = flow_max(bbr3_at_loss(p, o), (u32)bbr3_cut(bbr3_target(s), p->beta));
	if (s->phase == BBR3_UP) {
		s->undo_phase = BBR3_UP;
		bbr3_enter_down(f, s, p);
	}
}
FLOW_FN void bbr3_note_loss(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	u32 marks = s->reduces && f->state == FLOW_CWR;
	s->reduces = 0;
	if (!o->newly_lost && !marks)
		return;
	if (!s->loss_in_round && !s->marked) {
		s->loss_round_us = (u32)f->now_us;
		bbr3_save(s);
	}
	if (marks)
		s->marked = 1;
	if (o->newly_lost) {
		s->loss_in_round = 1;
		if (s->loss_acks < 255)
			s->loss_acks++;
	}
	if (s->probing && bbr3_too_high(s, p, o))
		bbr3_handle_too_high(f, s, p, o);
}
FLOW_FN void bbr3_startup_loss(const struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	if (!s->loss_round_start)
		return;
	if (s->phase == BBR3_STARTUP &&
	    ((f->state == FLOW_RECOVERY && s->loss_acks >= p->full_losses && bbr3_too_high(s, p, o)) || s->marked)) {
		s->undo_phase = BBR3_STARTUP;
		s->full_reached = 1;
		s->hi = flow_max(bbr3_bdp(s, s->bw, 100), s->inflight_latest);
	}
	s->loss_acks = 0;
}

/* ---- the bandwidth probe ---- */
FLOW_FN void bbr3_raise_hi(const struct flow *f, struct bbr3_state *s, const struct bbr3_sample *o)
{
	if (!flow_limited(f) || s->cwnd < s->hi)
		return; /* not in use */
	s->up_acked += flow_min(o->newly, 1u << 28);
	if (s->up_acked >= s->up_per) {
		u32 more = (u32)flow_div(s->up_acked, s->up_per);
		s->up_acked -= more * s->up_per;
		s->hi = flow_min(s->hi + more, 1u << 30);
	}
	if (s->round_start)
		bbr3_raise_slope(s);
}
/* What the ACKs of a probe say of the long-term bounds; whether the phase has changed by it. */
FLOW_FN int bbr3_adapt_upper(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	if (s->acks == BBR3_ACKS_STARTING && s->round_start)
		s->acks = BBR3_ACKS_FEEDBACK;
	if (s->acks == BBR3_ACKS_STOPPING && s->round_start) {
		s->probing = 0;
		s->acks = BBR3_ACKS_INIT;
		if (bbr3_in_probe_bw(s)) {
			if (!o->starved)
				bbr3_next_cycle(s);
			if (s->precaution && !s->too_high) {
				bbr3_enter_refill(f, s);
				return 1;
			}
		}
	}
	if (bbr3_too_high(s, p, o) || s->hi == BBR3_NONE)
		return 0;
	s->hi = flow_max(s->hi, o->in_flight);
	if (s->phase == BBR3_UP)
		bbr3_raise_hi(f, s, o);
	return 0;
}
FLOW_FN int bbr3_time_to_probe(const struct flow *f, const struct bbr3_state *s, const struct bbr3_params *p)
{
	return f->now_us > s->cycle_us + s->wait_us || s->rounds_since_up >= flow_min(bbr3_target(s), p->wait_rounds);
}
FLOW_FN int bbr3_time_to_go_down(const struct flow *f, struct bbr3_state *s, const struct bbr3_sample *o)
{
	if (s->too_high && f->in_flight >= s->hi) {
		s->precaution = 1;
		return 1;
	}
	if (flow_limited(f) && s->cwnd >= s->hi) {
		bbr3_reset_full(s, o->rate); /* the bound, not the path, holds the rate */
		return 0;
	}
	return s->full_now;
}
FLOW_FN void bbr3_cycle(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	if (!s->full_reached || bbr3_adapt_upper(f, s, p, o) || !bbr3_in_probe_bw(s))
		return;
	if (s->phase == BBR3_REFILL) {
		if (s->round_start) {
			s->probing = 1;
			bbr3_enter_up(f, s, o->rate);
		}
	} else if (s->phase == BBR3_UP) {
		if (bbr3_time_to_go_down(f, s, o)) {
			s->too_high = 0;
			bbr3_enter_down(f, s, p);
		}
	} else if (bbr3_time_to_probe(f, s, p)) {
		bbr3_enter_refill(f, s);
	} else if (s->phase == BBR3_DOWN && f->in_flight <= bbr3_headroom(s, p) &&
		   f->in_flight <= bbr3_inflight(f, s, p, bbr3_max_bw(s))) {
		s->phase = BBR3_CRUISE;
	}
}

/* ---- the RTT probe ---- */
FLOW_FN void bbr3_check_probe_rtt_done(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	if (s->done_us && f->now_us > s->done_us)
		bbr3_leave_probe_rtt(f, s, p);
}
FLOW_FN void bbr3_probe_rtt(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	if (s->phase != BBR3_PROBE_RTT && s->expired && !s->idle) {
		s->prior_cwnd = s->cwnd;
		s->phase = BBR3_PROBE_RTT;
		s->done_us = 0;
		s->acks = BBR3_ACKS_STOPPING;
		bbr3_start_round(f, s);
	}
	if (s->phase == BBR3_PROBE_RTT) {
		bbr3_rate_starve(f, &s->rate);
		if (!s->done_us && f->in_flight <= bbr3_probe_rtt_cwnd(s, p)) {
			s->done_us = f->now_us + (u64)p->rtt_probe_hold_ms * 1000;
			s->round_done = 0;
			bbr3_start_round(f, s);
		} else if (s->done_us) {
			if (s->round_start)
				s->round_done = 1;
			if (s->round_done)
				bbr3_check_probe_rtt_done(f, s, p);
		}
	}
	if (o->newly)
		s->idle = 0;
}

/* ---- control ---- */
FLOW_FN u32 bbr3_pacing_gain(const struct bbr3_state *s, const struct bbr3_params *p)
{
	switch (s->phase) {
	case BBR3_STARTUP: return p->startup_pacing;
	case BBR3_DRAIN: return p->drain_pacing;
	case BBR3_DOWN: return p->down_pacing;
	case BBR3_UP: return p->up_pacing;
	default: return 100;
	}
}
FLOW_FN void bbr3_set_cwnd(const struct flow *f, struct bbr3_state *s, const struct bbr3_params *p, const struct bbr3_sample *o)
{
	u32 gain = s->phase == BBR3_UP ? p->up_cwnd : s->phase == BBR3_PROBE_RTT ? p->rtt_probe_cwnd : p->cwnd_gain;
	u32 most = bbr3_budget(f, s, p, bbr3_bdp(s, s->bw, gain) + flow_max(s->extra[0], s->extra[1]));
	u32 newly = flow_min(o->newly, 1u << 28), cap = BBR3_NONE;
	if (s->full_reached)
		s->cwnd = flow_min(s->cwnd + newly, most);
	else if (s->cwnd < most || f->delivered - s->start < s->first)
		s->cwnd += newly;
	s->cwnd = flow_max(s->cwnd, p->cwnd_least);
	if (s->phase == BBR3_PROBE_RTT)
		s->cwnd = flow_min(s->cwnd, bbr3_probe_rtt_cwnd(s, p));
	if (s->phase == BBR3_CRUISE || s->phase == BBR3_PROBE_RTT)
		cap = bbr3_headroom(s, p);
	else if (bbr3_in_probe_bw(s))
		cap = s->hi;
	cap = flow_max(flow_min(cap, s->lo), p->cwnd_least);
	s->cwnd = flow_min(flow_min(s->cwnd, cap), flow_min(f->cwnd_max, 1u << 29));
}

/* ---- hooks ---- */
FLOW_FN void bbr3_init(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->cwnd = s->prior_cwnd = s->first = f->cwnd;
	s->start = f->delivered;
	s->min_rtt_us = s->probe_rtt_us = f->srtt_us ? flow_min(f->srtt_us, BBR3_RTT_MOST) : BBR3_NONE;
	s->min_us = s->probe_us = s->extra_us = s->cycle_us = f->now_us;
	s->round_us = s->loss_round_us = (u32)f->now_us;
	s->hi = s->undo_hi = s->undo_lo = s->up_per = BBR3_NONE;
	s->undo_bw_lo = BBR3_NO_RATE;
	s->undo_phase = BBR3_NO_PHASE;
	s->seed = (u32)f->now_us ^ f->srtt_us << 12 ^ f->self << 28;
	s->timed = f->srtt_us != 0;
	bbr3_reset_short(s);
	bbr3_rate_init(f, &s->rate);
	bbr3_first_pace(f, s, p);
}
FLOW_FN void bbr3_ack(struct flow *f, const struct flow_ack *a, struct bbr3_state *s, const struct bbr3_params *p)
{
	struct bbr3_sample o;
	if (!s->timed && f->srtt_us) {
		s->timed = 1;
		bbr3_first_pace(f, s, p);
	}
	bbr3_rate_ack(f, a, &s->rate, s->min_rtt_us == BBR3_NONE ? 0 : s->min_rtt_us, &o);
	o.starved = (u32)flow_forget(f, o.starved);
	o.timed = (u32)flow_forget(f, o.timed);
	bbr3_note_loss(f, s, p, &o);
	o.rate = flow_forget(f, o.rate);
	bbr3_latest(f, s, &o);
	flow_forget(f, 0);
	bbr3_startup_loss(f, s, p, &o);
	flow_forget(f, 0);
	bbr3_adapt_lower(s, p);
	flow_forget(f, 0);
	bbr3_aggregation(f, s, p, &o);
	flow_forget(f, 0);
	bbr3_full(s, p, &o);
	if (s->phase == BBR3_STARTUP && s->full_reached)
		bbr3_enter_drain(s);
	flow_forget(f, 0);
	if (s->phase == BBR3_DRAIN && (f->in_flight <= bbr3_inflight(f, s, p, s->bw) || s->rounds - s->drain_round > 3))
		bbr3_enter_down(f, s, p);
	flow_forget(f, 0);
	bbr3_cycle(f, s, p, &o);
	flow_forget(f, 0);
	bbr3_min_rtt(f, s, p, a->rtt_us);
	flow_forget(f, 0);
	bbr3_probe_rtt(f, s, p, &o);
	flow_forget(f, 0);
	if (s->loss_round_start) {
		s->bw_latest = o.rate;
		s->inflight_latest = o.delivered;
	}
	s->bw = flow_min64(bbr3_max_bw(s), s->bw_lo);
	if (s->bw)
		bbr3_pace(f, s, p, bbr3_pacing_gain(s, p));
	bbr3_set_cwnd(f, s, p, &o);
	f->word[0] = bbr3_Bps(f, s->bw, 100, 0) << 3 | s->phase; /* for who watches; siblings do not read it */
}
FLOW_FN void bbr3_grow(struct flow *f, const struct flow_ack *a, struct bbr3_state *s, const struct bbr3_params *p)
{
	(void)p;
	/* after a timeout the window comes back by what is delivered, and at once when all is repaired */
	f->cwnd = f->state == FLOW_LOSS ? flow_min(f->cwnd + a->acked, s->cwnd) : s->cwnd;
	f->cwnd = flow_min(f->cwnd, f->cwnd_max);
	f->ssthresh = flow_max(f->cwnd, 1); /* it is never in TCP's slow start */
	f->cwnd_cnt = 0;
}
FLOW_FN u32 bbr3_ssthresh(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	(void)p;
	s->reduces = 1; /* the state at the next ACK says why */
	if (!s->loss_in_round && !s->marked)
		bbr3_save(s);
	return flow_max(flow_min(s->cwnd, f->cwnd_max), 1);
}
FLOW_FN u32 bbr3_undo(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	(void)p;
	s->cwnd = flow_min(flow_max(s->cwnd, s->prior_cwnd), flow_min(f->cwnd_max, 1u << 29));
	s->loss_in_round = 0;
	bbr3_reset_full(s, 0);
	s->bw_lo = flow_max64(s->bw_lo, s->undo_bw_lo);
	s->lo = flow_max(s->lo, s->undo_lo);
	s->hi = flow_max(s->hi, s->undo_hi);
	if (s->undo_phase == BBR3_STARTUP) {
		s->full_reached = 0;
		if (s->phase != BBR3_PROBE_RTT)
			s->phase = BBR3_STARTUP;
	} else if (s->undo_phase == BBR3_UP && s->phase != BBR3_UP && s->phase != BBR3_PROBE_RTT) {
		bbr3_enter_refill(f, s);
	}
	s->undo_phase = BBR3_NO_PHASE;
	return flow_max(s->cwnd, 1);
}
FLOW_FN void bbr3_event(struct flow *f, u32 event, struct bbr3_state *s, const struct bbr3_params *p)
{
	if (event != FLOW_TX_START)
		return;
	bbr3_rate_start(f, &s->rate);
	if (bbr3_before((u32)f->now_us, s->round_us)) /* a rest of more than 2^31 us */
		bbr3_start_round(f, s);
	if (bbr3_before((u32)f->now_us, s->loss_round_us))
		s->loss_round_us = (u32)f->now_us;
	if (!(f->flags & FLOW_STARVED) && !s->rate.bubbles)
		return;
	s->idle = 1;
	s->extra_us = f->now_us;
	s->extra_delivered = 0; /* as tcp_bbr.c: the draft counts on, and what came before the rest is then all extra */
	if (bbr3_in_probe_bw(s))
		bbr3_pace(f, s, p, 100);
	else if (s->phase == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_done(f, s, p);
}
FLOW_FN void bbr3_send(struct flow *f, struct bbr3_state *s, const struct bbr3_params *p)
{
	(void)p;
	bbr3_rate_send(f, &s->rate);
	f->burst = 0;
	f->pace_Bps = s->pace_Bps;
	f->window = flow_max(s->cwnd, 1);
}
#endif
