/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* gleaner.h: a background transport that takes what others leave, and comes back at once. Ours, after ImTCP-bg (Tsugawa,
 * Hasegawa, Murata: Background TCP data transfer with inline network measurement, APCC 2005): the available bandwidth is
 * measured inline, and is the ceiling.
 *
 * What is different from it: a paced rate in place of a window; every half of a round is the measurement's train
 * (gleaner_line.h), so that bunches do no harm; and to yield is not to forget: as soon as the queue is empty the rate is A again.
 *
 * START  the first window leaves at once and tells C: RUN, with A half of it. If it does not, the window grows by `start`
 *        thousandths of what is acked, until a queue stands
 * RUN    pace: `run` thousandths of A; while others were seen in the last quiet_s seconds, `room` packets an RTT less, so that
 *        the first packets of a page have left the queue when its next ones come, an RTT later
 * YIELD  a queue above the threshold: the pace falls by `yield` times its delay over the least RTT. When the queue is below
 *        4/5 of it, RUN; beside others, if a packet was lost, once the line could have carried `wait` packets: a buffer that overflows is small,
 *        or the sender of a long flow fills it again.
 * Where less than the least pace is left of it the window shuts, to four packets: a pace is promised for the whole time to the
 * next packet, and would keep the flow silent beyond the ACK that tells of an empty queue.
 * The fuller a line, the more a packet too many costs those who wait there. So `scarce` thousandths of the share of C that A is
 * below it are taken off the pace, and the least pace, two packets in `gap` RTTs or in an eighth of the yield, of which the end
 * of a queue is heard, is C / A times rarer, `rare` at most.
 *
 * A as measured when a queue began to stand: near A itself or C (`near`) it was our own rate that was too high, and A is that value,
 * but falls by `fall` at most: of several gleaners the large one gives up as large a share as the small one, and both grow alike.
 * Else others came: A gives `gamma` of the difference up, and the pace yields more on paths of few packets (`small`), where a
 * page's packets are a large part of an RTT. A round without a queue raises A: by a quarter of what is missing to
 * where it has been (C that a bunch told counts as such; forgotten by `fade`), and beyond by `step` thousandths of C, twice as much each round; never more than
 * `step_most` at once (a queue of a quarter of the path's product must hold what is too much), nor beyond C by more than `over`.
 * A yield of more than `patience` RTTs loses `age` of A in each further one. A loss: `keep` of A.
 * A queue is short if packets are lost in it below `tight` thresholds: drop-tail of a small part of an RTT, or CoDel. There is no
 * time to hear of others, so a loss silences for hold_ms, twice as long each time while it goes on; the threshold is a part of
 * the depth, which takes all of the pace; and A stays below C, where the own packets meet no queue and lose nothing.
 * A loss is random if the queue was far shorter than the line has shown that it can be: no silence, and `random` of A where
 * others would have been heard of, and not so many packets are lost as a policer drops.
 * Both leave two packets a second.
 * A queue in which a bunch has no room loses a row of it: until one told C, a single loss silences nobody.
 * Where losses are the wire's (gleaner_wire) none is a short queue's: `random` of A is kept, and what a queue says is heard. Where a
 * row belied that once, A does not pass C.
 * A policer drops where no queue is (gleaner_police). What comes in the RTT after a loss left when its bucket was empty, and comes at its
 * rate. If twice much of that is missing, in each quarter of the RTT (a wire loses a burst in one part of it), and what comes is alike and
 * far from C, it is tried: the pace was kept at the second loss, so that the bucket did not fill, and doubles for an RTT. So it is where what
 * comes is alike `same` times, however little is missing. If much of that is missing or lost (of a wire it would be chance), it takes the place of C, and all is as in a short queue but that there is no queue to hear
 * of. So many losses in a row after which little is missing (`mild`) take that back.
 * word[0]: A [byte/s]. */
#ifndef GLEANER_H
#define GLEANER_H
#include "gleaner_line.h"
#include "gleaner_mark.h"
#define gleaner_hooks (FLOW_INIT | FLOW_ACK | FLOW_GROW | FLOW_SSTHRESH | FLOW_EVENT | FLOW_SEND)
#define gleaner_KERNEL "pc_gleaner"
#define gleaner_PAPER "none: ours. The available bandwidth as ceiling: Tsugawa, Hasegawa, Murata, APCC 2005"
#define gleaner_BASIS "ours; no part of a paper is certain but the idea of the ceiling"
#define gleaner_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(run, 970, 100, 1000, "pace while no queue stands [1/1000 A]", "ours") \
	P(room, 5, 0, 1000, "packets an RTT left free while others are seen", "ours") \
	P(quiet_s, 5, 0, 1000, "so long others count as seen [s]", "ours") \
	P(least_us, 2000, 0, 1000000, "least queueing delay that is a queue [us]", "ours") \
	P(packets, 2000, 0, 100000, "least queue, in packets of the line [1/1000]", "ours") \
	P(share, 60, 0, 1000, "least queueing delay, of the least RTT [1/1000]", "ours") \
	P(share_us, 3000, 0, 1000000, "which is at most so much [us]", "ours") \
	P(see_us, 150, 0, 1000000, "least queueing delay that is seen in a short queue [us]", "ours") \
	P(tight, 8, 1, 100, "a queue is short if packets are lost below so many least ones", "ours") \
	P(deep, 5, 1, 100, "in a short queue, the least one is so many times smaller than it", "ours") \
	P(hold_ms, 2000, 0, 1000000, "silence after a loss in a short queue, doubled by the next one [ms]", "ours") \
	P(hold_most_ms, 64000, 0, 1000000, "longest silence [ms]", "ours") \
	P(calm_holds, 4, 1, 100, "so many silences later without a loss the next one is half as long", "ours") \
	P(tight_wait, 2000, 0, 10000, "`wait` in a short queue, after each yield, for eight hold_ms at most", "ours") \
	P(tight_step, 10, 1, 1000, "`step_most` in a short queue [1/1000 C]", "ours") \
	P(tight_over, 1000, 1, 1000, "A in a short queue at most [1/1000 C]", "ours") \
	P(tight_fall, 60, 0, 1000, "by so much less after a loss near that [1/1000 C]", "ours") \
	P(tight_rise, 20, 0, 1000, "and more again after `calm_holds` [1/1000 C]", "ours") \
	P(shown, 3, 1, 100, "a loss is random if the queue was so many times smaller than the longest seen", "ours") \
	P(random, 950, 0, 1000, "share of A kept after a random loss [1/1000]", "ours") \
	P(single, 3, 1, 100, "so many losses without a queue are the wire's; twice as many after a row", "ours") \
	P(wire, 20, 0, 1000, "of all packets no more are [1/1000]", "ours") \
	P(gone, 50, 0, 1000, "a policer drops more than this of an RTT's packets, twice as much in a trial [1/1000]", "ours") \
	P(police, 850, 0, 1000, "and lets less than this of C through [1/1000]", "ours") \
	P(alike, 120, 0, 1000, "twice, which differ by this at most [1/1000]", "ours") \
	P(unlike, 3, 1, 1000, "so many losses that are less in a row, and the first one is forgotten", "ours") \
	P(same, 8, 1, 1000, "or so many in a row, however little is missing; then again after hold_ms, twice as long each time", "ours") \
	P(trial, 2000, 1000, 4000, "tried by so much of what came [1/1000]", "ours") \
	P(trial_fill, 1500, 0, 4000, "until so much of it is in flight, or four RTTs [1/1000]", "ours") \
	P(mild, 8, 1, 1000, "so many losses that are less end it", "ours") \
	P(loosen_s, 10, 0, 1000, "and after so long without one it lets a fiftieth more through [s]", "ours") \
	P(filter, 90, 0, 4000, "the smallest delay of two such times counts [1/1000 RTT]", "ours") \
	P(yield, 1000, 0, 100000, "share of the pace given up, in shares of the RTT that queue is [1/1000]", "ours") \
	P(small, 200, 0, 10000, "to others as much more as a path holds less than so many packets", "ours") \
	P(wait, 200, 0, 10000, "packets that the line could carry without a queue until it returns, after a loss", "ours") \
	P(scarce, 250, 0, 1000, "share of the pace given up, times 1 - A / C [1/1000]", "ours") \
	P(gap, 1000, 1, 10000, "RTTs between the pairs of packets of the least pace [1/1000]", "ours") \
	P(rare, 8, 1, 1000, "the least pace is C / A times rarer, so often at most", "ours") \
	P(near, 700, 0, 1000, "a measured A from this share of A on is due to the own rate [1/1000]", "ours") \
	P(gamma, 100, 0, 1000, "share of the difference that A falls by when others come [1/1000]", "ours") \
	P(fall, 100, 1, 1000, "most that A falls by when the own rate was too high [1/1000]", "ours") \
	P(calm, 1000, 143, 10000, "a queue up to this share of the least one lets a small A grow, on a path of many packets [1/1000]", "ours") \
	P(step, 8, 1, 1000, "growth of A in the first round beyond where it has been [1/1000 C]", "ours") \
	P(step_most, 40, 1, 1000, "most growth of A in a round [1/1000 C]", "ours") \
	P(over, 50, 50, 1000, "A is at most so much above C; more after 8 rounds [1/1000]", "ours") \
	P(fade, 128, 1, 100000, "rounds in which it is forgotten where A has been", "ours") \
	P(patience, 3, 0, 1000, "RTTs of a yield before A ages", "ours") \
	P(age, 100, 0, 1000, "share of A lost in each further round of it [1/1000]", "ours") \
	P(keep, 700, 0, 1000, "share of A kept after a loss [1/1000]", "ours") \
	P(start, 250, 1, 1000, "growth of the first window [1/1000 acked]", "ours") \
	P(base_window_s, 300, 1, 3600, "the least RTT is of one to two such times [s]", "ours")
struct gleaner_params { gleaner_PARAMS(FLOW_PARAM_FIELD) };
enum { GLEANER_START, GLEANER_RUN, GLEANER_YIELD };
struct gleaner_state {
	struct gleaner_line line;
	u64 a, peak;                       /* A, and where it has been [byte/s] */
	u64 round_end, round_us, round_una; /* a round ends when its first byte's ACK comes */
	u64 since_us, cut_us, others_us;   /* of the phase; last time that A was judged; others were last seen, 0: never */
	u64 low_us;                        /* the queue is below since, 0: it is not */
	u32 phase, clear;                  /* clear: rounds without a queue, in a row */
	u32 stood, others;                 /* a queue stood in this round; others caused it */
	u64 known;                         /* the largest C that a bunch told */
	u32 credit, lost;                  /* a packet was, in this yield */
	u64 held_us, hold_us, eased_us;    /* silent until; for how long the last time; that was halved last */
	u32 deep_us, shown_us;             /* queueing delay at which packets are lost, 0: none was; the longest seen */
	u32 below, single;                 /* A in a short queue is so much below tight_over [1/1000 C]; losses that look like the wire's */
	u32 lost_was, delivered_was;       /* at the last loss */
	u32 losses, between;               /* packets lost and delivered from one loss to the next, means [1/16] */
	u32 proof, pad;                    /* so many are the wire's, if more than `single` */
	u64 policed, guess;                /* what a policer lets through, 0: there is none; at the last loss that was like it [byte/s] */
	struct gleaner_mark mark;          /* a loss or a trial's end, and what came since */
	u64 loosened_us;                   /* `policed` grew last */
	u64 trial_us, trial;               /* a trial began, 0: none goes on; its pace [byte/s] */
	u32 trial_lost, trial_delivered;   /* by then */
	u64 came, next_us, wait_us;        /* after losses, mean [byte/s]; a trial for its sake may be from; it waits for so long */
	u32 same, pad3;                    /* losses in a row with that */
	u32 kept, judged;                  /* the pace was, at the loss; what left in the trial comes */
	u32 mild, pad2;                    /* losses in a row that were not a policer's */
	u64 plain;                         /* see gleaner_plain */
};
#define GLEANER_CLEAR_MOST 64
#define GLEANER_FIRST 10 /* packets of the first window, which TCP does not pace */
#define GLEANER_SHUT 4   /* the window while it is silent */
#define GLEANER_CAME 100 /* delivered before the first loss, at least */
#define GLEANER_PROOF_MOST 24
#define GLEANER_SPREAD 4 /* quarters of an RTT in which a policer drops, at least */

/* Through memory, of whose ranges the kernel's verifier knows nothing: what follows is then checked once, not once for each way to here. */
FLOW_FN u64 gleaner_plain(struct gleaner_state *s, u64 of)
{
	volatile u64 *through = &s->plain;
	*through = of;
	return *through;
}
/* The compiler keeps nothing of the state in registers from here on, for the same reason. */
#define GLEANER_AGAIN() __asm__ volatile("" ::: "memory")
FLOW_FN u64 gleaner_time(struct gleaner_state *s) { return flow_max(s->line.base_us, 100); }

/* a window in a time, `share` millionths of it [byte/s] */
FLOW_FN u64 gleaner_window(const struct flow *f, u64 share, u64 us)
{
	return flow_div((u64)flow_min(f->cwnd, 1u << 20) * flow_min(f->mss, 1u << 17) * share, us); /* 2^58 */
}
/* so many thousandths of a packet, on the line [us] */
FLOW_FN u32 gleaner_packets(const struct flow *f, struct gleaner_state *s, u32 packets)
{
	return (u32)flow_min64(flow_div((u64)f->mss * 1000 * packets, flow_max64(s->line.most, 1)), 1000000); /* 2^32 * 2^10 * 2^17 */
}
/* queueing delay from which a queue stands where it has room [us] */
FLOW_FN u32 gleaner_usual(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u32 share = flow_min((u32)((u64)s->line.base_us * p->share / 1000), p->share_us);
	return (u32)gleaner_plain(s, flow_max(flow_max(p->least_us, share), gleaner_packets(f, s, p->packets)));
}
/* The line loses packets before that tells enough. */
FLOW_FN int gleaner_tight(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	return (int)gleaner_plain(s, !s->policed && s->deep_us && s->deep_us < (u64)gleaner_usual(f, s, p) * p->tight);
}
/* Whether a loss silences. */
FLOW_FN int gleaner_narrow(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	return s->policed || gleaner_tight(f, s, p);
}
/* least delay by which a queue is seen at all [us] */
FLOW_FN u32 gleaner_seen(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	return flow_max(p->see_us, gleaner_packets(f, s, 1500));
}
/* queueing delay from which a queue stands [us] */
FLOW_FN u32 gleaner_threshold(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u32 most = gleaner_usual(f, s, p);
	if (gleaner_tight(f, s, p))
		most = flow_min(most, flow_max(s->deep_us / flow_max(p->deep, 1), gleaner_seen(f, s, p)));
	return (u32)gleaner_plain(s, most);
}
FLOW_FN void gleaner_init(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	flow_start(f, p->initial_ssthresh_bytes);
	s->line.base_us = flow_min(f->srtt_us, GLEANER_RTT_MOST);
	s->line.una = s->round_una = f->una;
	s->line.turned_us = s->round_us = f->now_us;
	s->round_end = f->nxt;
	f->word[0] = f->word[1] = 0;
}
/* by how much more others are left on a path of few packets [1/1000] */
FLOW_FN u64 gleaner_more(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 holds = flow_max64(s->line.most * gleaner_time(s) / 1000000, 1); /* 2^36 * 2^24 */
	return gleaner_plain(s, flow_min64(flow_div((u64)p->small * f->mss * 1000, holds), 1u << 20));
}
/* A queue stands, or a packet was lost. */
FLOW_FN void gleaner_yield(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 now = gleaner_plain(s, gleaner_available(&s->line));
	s->phase = GLEANER_YIELD;
	s->since_us = f->now_us;
	s->stood = 1;
	s->others = now * 1000 < flow_min64(s->a, s->line.most) * p->near;
	if (s->others)
		s->others_us = f->now_us;
	if (f->now_us - s->cut_us < f->srtt_us)
		return;
	s->cut_us = f->now_us;
	s->peak = flow_max64(s->peak, s->a);
	if (!s->others)
		s->a = flow_max64(flow_min64(now, s->a), s->a - s->a * p->fall / 1000);
	else
		s->a -= (s->a - flow_min64(now, s->a)) * p->gamma / 1000;
}
/* two packets in a time that is the longer the fuller the line and the longer the yield [byte/s] */
FLOW_FN u64 gleaner_slowest(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 gap = gleaner_time(s) * p->gap / 1000, rare;
	if (s->phase == GLEANER_YIELD)
		gap = flow_max64(gap, flow_min64(f->now_us - s->since_us, 1ull << 40) / 8);
	rare = flow_min64(flow_div(s->line.most * 1024, flow_max64(s->a, 1)), 1024ull * p->rare);
	gap = gap * flow_max64(rare, 1024) / 1024; /* 2^38 * 2^20 */
	return gleaner_plain(s, flow_div(2ull * f->mss * 1000000, flow_max64(flow_min64(gap, 1000000), 1)));
}
/* the pace by A and the queue, 0 and more */
FLOW_FN u64 gleaner_left(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 pace = s->a * p->run / 1000, base = gleaner_time(s), off;
	if (s->a < s->line.most)
		pace -= pace * flow_div((s->line.most - s->a) * 1000 * p->scarce, s->line.most) / 1000000; /* 2^36 * 2^20 */
	if (s->others_us && f->now_us - s->others_us < (u64)p->quiet_s * 1000000)
		pace -= flow_min64(pace / 4, flow_div((u64)p->room * f->mss * 1000000, base));
	if (f->now_us < s->held_us)
		return 0;
	if (gleaner_tight(f, s, p))
		base = flow_min64(base, flow_max(s->deep_us, 100));
	if (s->phase == GLEANER_YIELD) {
		off = (u64)p->yield * (1000 + (s->others ? gleaner_more(f, s, p) : 0)) / 1000; /* 2^17 * 2^21 */
		pace = pace * (1000 - flow_min64(flow_div(gleaner_queue(&s->line) * off, base), 1000)) / 1000;
	}
	return gleaner_plain(s, flow_min64(pace, GLEANER_RATE_MOST));
}
FLOW_FN u64 gleaner_pace(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	if (s->trial_us && !s->judged)
		return s->trial;
	if (s->phase == GLEANER_START)
		return flow_min64(gleaner_window(f, 1200000, gleaner_time(s)), GLEANER_RATE_MOST);
	return gleaner_plain(s, flow_max64(gleaner_left(f, s, p), gleaner_slowest(f, s, p)));
}
/* Packets so far apart that the ACK of one would wait for the next leave in pairs, which are acknowledged at once. */
FLOW_FN int gleaner_pairs(const struct flow *f, u64 pace) { return pace * FLOW_PAIRS_CLOSE_US < f->mss * 1000000ull; }

/* delay of the last packet of a pair, or of a millisecond's worth that leaves at once [us] */
FLOW_FN u64 gleaner_bunch(const struct flow *f, struct gleaner_state *s, u64 pace)
{
	u64 bytes = pace / 1000;
	if (gleaner_pairs(f, pace))
		return gleaner_plain(s, flow_min64(flow_div(f->mss * 1000000ull, s->line.most), 1000000));
	bytes -= flow_min64(bytes, f->mss);
	return gleaner_plain(s, flow_min64(flow_div(bytes * 1000000, s->line.most), 1000)); /* 2^26 * 2^20 */
}
/* Queueing delay up to which A grows: 1/7 of a queue where A is C, more where A is less and the path holds many packets. Who sends
 * little meets a packet of others at each of its own, and of two gleaners the smaller would never grow. [us] */
FLOW_FN u64 gleaner_calm(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 free = 1000 - flow_min64(flow_div(s->a * 1000, flow_max64(s->line.most, 1)), 1000);
	u64 share = 143 + flow_div(free * (p->calm - 143), 1000 + gleaner_more(f, s, p));
	return gleaner_plain(s, (u64)gleaner_threshold(f, s, p) * share / 1000);
}
/* of A in a short queue, in which a millisecond's worth of packets must have room if they leave at once [byte/s] */
FLOW_FN u64 gleaner_ceiling(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 c = s->line.most, most = c * (p->tight_over - flow_min(s->below, p->tight_over)) / 1000;
	if (s->policed)
		return most;
	return flow_min64(most, flow_max64(c * flow_min(s->deep_us, 2000) / 1000, 2000ull * f->mss - 1));
}
/* `below` at most: a fifth of C, or where packets leave one by one */
FLOW_FN u32 gleaner_lowest(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 single = flow_div(2000ull * f->mss * 1000, flow_max64(s->line.most, 1));
	return p->tight_over - (u32)flow_min64(flow_min64(single, 800), p->tight_over);
}
/* A round without a queue, of which the rate was ours. */
FLOW_FN void gleaner_rise(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 c = s->line.most, step = c * p->step / 1000;
	int tight = gleaner_narrow(f, s, p);
	s->clear = flow_min(s->clear + 1, GLEANER_CLEAR_MOST);
	if (s->a + s->a / 64 < s->peak)
		step = flow_max64((s->peak - s->a) / 4, step);
	else
		step <<= flow_min(s->clear, 8);
	step = gleaner_plain(s, step);
	s->a += flow_min64(step, c * (tight ? p->tight_step : p->step_most) / 1000);
	if (tight)
		s->a = flow_min64(s->a, gleaner_ceiling(f, s, p));
	else
		s->a = flow_min64(s->a, s->proof ? c : c + c * p->over / 1000 * flow_max(s->clear, 8) / 8); /* 2^36 * 2^10 */
}
/* No loss for some silences. */
FLOW_FN void gleaner_ease(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	if (f->now_us < s->eased_us || f->now_us - s->eased_us < s->hold_us * p->calm_holds)
		return;
	s->eased_us = f->now_us;
	s->hold_us /= 2;
	if (s->policed && !s->below && f->now_us - s->loosened_us > (u64)p->loosen_s * 1000000) {
		s->policed += s->policed / 50;
		s->loosened_us = f->now_us;
	}
	s->below -= flow_min(s->below, p->tight_rise);
}
FLOW_FN void gleaner_round(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 took = f->now_us - s->round_us, pace;
	u64 rate = gleaner_plain(s, flow_div(flow_min64(f->una - s->round_una, 1ull << 43) * 1000000, took));
	s->round_us = f->now_us;
	s->round_una = f->una;
	s->round_end = f->nxt;
	if (!gleaner_narrow(f, s, p) && (s->line.most > s->line.told || f->now_us - s->line.told_us > GLEANER_OLD_US))
		s->line.most -= s->line.most / 256 * flow_min64(took, 1000000) / 1000000; /* 2^36 * 2^20 */
	s->peak = flow_max64(s->peak - s->peak / flow_max(p->fade, 1), s->a);
	if (s->phase == GLEANER_START) {
		s->a = flow_max64(s->a, flow_min64(rate, GLEANER_RATE_MOST));
		s->line.most = flow_max64(s->line.most, s->a);
	}
	if (s->line.told > s->known) { /* A has not been there, but may */
		s->known = s->line.told;
		s->peak = flow_max64(s->peak, s->known);
		if (s->phase == GLEANER_START && f->delivered > GLEANER_FIRST) {
			s->phase = GLEANER_RUN;
			s->since_us = f->now_us;
			s->a = flow_max64(s->a, s->known / 2);
		}
	}
	if (s->phase == GLEANER_YIELD && f->now_us - s->since_us > (u64)p->patience * f->srtt_us)
		s->a = flow_max64(s->a - s->a * p->age / 1000, 2ull * f->mss);
	GLEANER_AGAIN();
	gleaner_ease(f, s, p);
	GLEANER_AGAIN();
	pace = gleaner_pace(f, s, p);
	if (s->stood || s->phase != GLEANER_RUN) {
		s->stood = s->phase == GLEANER_YIELD;
		s->clear = 0;
	} else if (gleaner_queue(&s->line) > gleaner_calm(f, s, p) + gleaner_bunch(f, s, pace)) {
		s->clear = 0;
	} else if (rate * 5 >= pace * 4) {
		gleaner_rise(f, s, p);
	}
}
/* The line has been without a queue for as long as it takes to carry `wait` packets. */
FLOW_FN int gleaner_rested(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 bytes = flow_min64(f->now_us - s->low_us, 1u << 27) * s->line.most / 1000000; /* 2^27 * 2^36 */
	if (f->now_us < s->held_us)
		return 0;
	if (!gleaner_narrow(f, s, p))
		return bytes >= (u64)p->wait * f->mss;
	return bytes >= (u64)p->tight_wait * f->mss || f->now_us - s->low_us >= 8000ull * p->hold_ms;
}
/* In a queue of a packet or two no queue stands: a packet of others at the own one's place is all that is seen. */
FLOW_FN int gleaner_meets(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 pace;
	if (!gleaner_tight(f, s, p) || s->deep_us > gleaner_packets(f, s, 3000) || f->now_us - s->since_us < 3ull * f->srtt_us)
		return 0;
	pace = gleaner_pace(f, s, p);
	/* the second of a pair waits for the first, and is heard of for two RTTs */
	if (gleaner_pairs(f, pace / 2) && (gleaner_pairs(f, pace) || s->a * 4 < s->line.most * 3))
		return 0;
	return (int)gleaner_plain(s, gleaner_highest(&s->line) > flow_max(p->see_us, gleaner_packets(f, s, 500)) + gleaner_bunch(f, s, pace));
}
/* Another loss: beside a short queue others are left the line for long. */
FLOW_FN void gleaner_hold(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u32 queue = flow_max(gleaner_highest(&s->line), 1);
	if (!s->policed)
		s->deep_us = s->deep_us ? s->deep_us - s->deep_us / 4 + queue / 4 : queue;
	if (!gleaner_narrow(f, s, p))
		return;
	s->hold_us = flow_min64(flow_max64(2 * s->hold_us, p->hold_ms * 1000ull), p->hold_most_ms * 1000ull);
	if (s->a * 8 > gleaner_ceiling(f, s, p) * 7)
		s->below = flow_min(s->below + p->tight_fall, gleaner_lowest(f, s, p));
	s->held_us = s->eased_us = f->now_us + s->hold_us;
	s->peak = s->a;
}
/* A loss while there is room in the queue. */
FLOW_FN int gleaner_random(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u32 queue = gleaner_highest(&s->line);
	return queue < gleaner_usual(f, s, p) && s->shown_us >= gleaner_seen(f, s, p) * 3 && (u64)queue * p->shown < s->shown_us;
}
/* Whether losses are the wire's. They come one at a time, or as many as their share makes likely in a window, where a full queue takes a
 * row; the share is small; most meet no queue but that of the own bunch; and the line has shown that it has a queue. */
FLOW_FN int gleaner_wire(const struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u32 lost = flow_min(f->lost - s->lost_was, 1u << 16), came = flow_min(f->delivered - s->delivered_was, 1u << 24);
	u64 likely = flow_div(2ull * flow_min(f->in_flight, 1u << 20) * s->losses, s->between); /* 2^21 * 2^20 */
	u32 queue = gleaner_highest(&s->line), enough = flow_max(s->proof, p->single);
	int few = lost <= GLEANER_ROW + 2 * likely && (u64)s->losses * 1000 <= (u64)s->between * p->wire;
	few = (int)gleaner_plain(s, (u64)few);
	s->lost_was = f->lost;
	s->delivered_was = f->delivered;
	s->losses = s->between ? s->losses - s->losses / 8 + 2 * lost : 16;
	s->between = s->between ? s->between - s->between / 8 + 2 * came : 16 * flow_max(came, GLEANER_CAME);
	GLEANER_AGAIN();
	if (!few) {
		if (s->single >= enough)
			s->proof = flow_min(2 * enough, GLEANER_PROOF_MOST);
		s->single = 0;
	} else if (queue < gleaner_seen(f, s, p) + gleaner_bunch(f, s, gleaner_pace(f, s, p))) {
		s->single = flow_min(s->single + 1, 8 * p->single);
	} else if ((u64)queue * 4 >= (u64)s->shown_us * 3) { /* as full as ever */
		s->single -= flow_min(s->single, 1);
	}
	GLEANER_AGAIN();
	return (int)gleaner_plain(s, s->shown_us >= gleaner_seen(f, s, p) * 3 && s->single >= flow_max(s->proof, p->single));
}
/* Gives way after a loss; 0: it is the wire's, and A is `random` of it. */
FLOW_FN int gleaner_cut(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	int early = !s->deep_us && (s->phase == GLEANER_START || !s->line.told) && f->lost - s->lost_was <= 1;
	int random = gleaner_random(f, s, p), wire = gleaner_wire(f, s, p) && s->phase != GLEANER_START && !s->policed, yields = 1;
	GLEANER_AGAIN();
	if (gleaner_plain(s, (u64)wire)) {
		s->deep_us = s->below = 0;
		s->hold_us = s->held_us = 0;
		yields = gleaner_highest(&s->line) >= gleaner_usual(f, s, p);
	} else if (random && !s->policed && s->shown_us >= (u64)gleaner_usual(f, s, p) * p->shown
		   && (u64)s->losses * 1000 <= (u64)s->between * p->gone) {
		wire = 1;
		yields = 0;
	} else {
		if (s->phase == GLEANER_START) {
			/* of the first window itself: the rest of it tells little of the line */
			s->a = flow_max64(flow_max64(s->line.rate, s->a / 2), flow_min64(gleaner_window(f, 500000, gleaner_time(s)), GLEANER_RATE_MOST));
			s->line.most = flow_max64(s->line.most, s->a);
		}
		if (s->policed || (!random && !early))
			gleaner_hold(f, s, p);
	}
	GLEANER_AGAIN();
	if (gleaner_plain(s, (u64)yields))
		gleaner_yield(f, s, p);
	GLEANER_AGAIN();
	wire = (int)gleaner_plain(s, (u64)wire);
	if (!wire && !early)
		s->lost = 1;
	s->a = flow_max64(s->a * (wire ? p->random : p->keep) / 1000, 2ull * f->mss);
	return (int)gleaner_plain(s, (u64)!wire);
}
/* Much of what was in flight at the mark is missing. */
FLOW_FN int gleaner_gone(const struct flow *f, struct gleaner_state *s, u32 share)
{
	return (int)gleaner_plain(s, (u64)gleaner_missing(f, &s->mark, share));
}
/* packets in an RTT as a rate [byte/s] */
FLOW_FN u64 gleaner_rate(const struct flow *f, struct gleaner_state *s, u32 packets)
{
	u64 bytes = (u64)packets * flow_min(f->mss, 1u << 17);
	return gleaner_plain(s, flow_min64(flow_div(bytes * 1000000, gleaner_time(s)), GLEANER_RATE_MOST)); /* 2^24 * 2^17 * 2^20 */
}
/* A trial of whether there is a policer: more leaves than came. Not 0: there is, and it is given way. */
FLOW_FN int gleaner_try(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 took = f->now_us - s->trial_us, base = gleaner_time(s), lost, came;
	int found;
	if (!s->judged) {
		u64 fills = gleaner_rate(f, s, flow_min(f->in_flight, 1u << 24)); /* 2^36 * 2^12 */
		/* while packets are recovered TCP lets less leave */
		if (took < base || (took < 4 * base && fills * 1000 < s->guess * p->trial_fill))
			return 0;
		s->judged = 1;
		gleaner_mark(f, &s->mark);
		return 0;
	}
	if (!gleaner_marked(f, &s->mark, base))
		return 0;
	s->trial_us = s->mark.at_us = 0;
	lost = flow_min(f->lost - s->trial_lost, 1u << 24);
	came = flow_min(f->delivered - s->trial_delivered, 1u << 24);
	found = lost * 500 > came * p->gone || gleaner_gone(f, s, 2 * p->gone);
	if (found) {
		s->policed = s->line.most = s->guess;
		s->loosened_us = f->now_us;
		s->below = s->deep_us = 0;
		s->wait_us = 0;
		s->a = flow_min64(s->a, s->policed);
	} else {
		/* what was lost meanwhile is none of its row */
		s->lost_was = f->lost;
		s->delivered_was = f->delivered;
	}
	s->guess = 0;
	return found;
}
FLOW_FN int gleaner_alike(u64 a, u64 b, u32 share) { return (a > b ? a - b : b - a) * 1000 <= b * share; }
/* An RTT after a loss. Not 0: it is given way. */
FLOW_FN int gleaner_judge(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	int empty, like, kept = (int)s->kept;
	u64 rate;
	if (!s->mark.at_us || !gleaner_marked(f, &s->mark, gleaner_time(s)))
		return 0;
	s->mark.at_us = 0;
	s->kept = 0;
	empty = gleaner_highest(&s->line) < gleaner_usual(f, s, p);
	like = s->mark.spread >= GLEANER_SPREAD && gleaner_gone(f, s, p->gone);
	like = (int)gleaner_plain(s, (u64)like);
	if (gleaner_came(f, &s->mark) < GLEANER_LEAST || !empty)
		return kept;
	s->mild = like ? 0 : s->mild + 1;
	GLEANER_AGAIN();
	if (s->mild >= (s->policed ? p->mild : p->unlike))
		s->policed = s->guess = s->mild = 0;
	GLEANER_AGAIN();
	rate = gleaner_rate(f, s, gleaner_came(f, &s->mark));
	if (s->policed) {
		if (like)
			s->policed = rate > s->policed ? s->policed + (rate - s->policed) / 4 : s->policed - (s->policed - rate) / 8;
		return kept;
	}
	if (!s->line.told || rate * 1000 >= s->line.most * p->police)
		return kept;
	GLEANER_AGAIN();
	s->same = gleaner_alike(rate, s->came, p->alike) ? s->same + 1 : 0;
	s->came = s->same ? s->came - s->came / 4 + rate / 4 : rate; /* 2^36 */
	if (like && s->guess && gleaner_alike(rate, s->guess, p->alike)) {
		s->guess = (rate + s->guess) / 2;
	} else if (s->same >= p->same && f->now_us >= s->next_us) {
		s->wait_us = flow_min64(flow_max64(2 * s->wait_us, p->hold_ms * 1000ull), p->hold_most_ms * 1000ull);
		s->next_us = f->now_us + s->wait_us;
		s->guess = s->came;
	} else {
		if (like)
			s->guess = rate;
		return kept;
	}
	GLEANER_AGAIN();
	s->same = 0;
	s->trial_lost = f->lost;
	s->trial_delivered = f->delivered;
	s->trial_us = f->now_us;
	s->trial = flow_min64(flow_max64(s->a, s->guess * p->trial / 1000), s->line.most);
	s->judged = 0;
	return 0;
}
/* What of an RTT after a loss came left while the bucket was empty, and tells of a policer. */
FLOW_FN void gleaner_police(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	int cut = s->trial_us ? gleaner_try(f, s, p) : gleaner_judge(f, s, p);
	cut = (int)gleaner_plain(s, (u64)cut);
	GLEANER_AGAIN();
	if (cut)
		gleaner_cut(f, s, p);
}
FLOW_FN void gleaner_ack(struct flow *f, const struct flow_ack *a, struct gleaner_state *s, const struct gleaner_params *p)
{
	u32 queue, most, yields = 0;
	gleaner_hear(f, a, &s->line, p->filter, p->base_window_s);
	GLEANER_AGAIN();
	gleaner_police(f, s, p);
	GLEANER_AGAIN();
	if (s->policed)
		s->line.most = flow_min64(s->line.most, s->policed);
	GLEANER_AGAIN();
	queue = (u32)gleaner_plain(s, gleaner_queue(&s->line));
	s->shown_us = flow_max(s->shown_us, gleaner_highest(&s->line));
	most = gleaner_threshold(f, s, p);
	if (s->phase == GLEANER_START && queue > most && s->line.full && f->delivered > GLEANER_FIRST) {
		s->a = flow_max64(s->a, s->line.rate);
		s->line.most = flow_max64(s->line.most, s->a);
		s->cut_us = f->now_us;
		yields = 1;
	} else if (s->phase == GLEANER_RUN) {
		yields = queue > most || gleaner_meets(f, s, p);
	} else if (s->phase == GLEANER_YIELD && queue * 5 <= most * 4) {
		if (!s->low_us)
			s->low_us = f->now_us;
		if ((!gleaner_narrow(f, s, p) && (!s->lost || !s->others)) || gleaner_rested(f, s, p)) {
			s->phase = GLEANER_RUN;
			s->since_us = f->now_us;
			s->round_end = f->nxt;
			s->lost = 0;
		}
	} else if (s->phase == GLEANER_YIELD && queue > 2 * most) {
		s->others = 1;
	}
	GLEANER_AGAIN();
	if (gleaner_plain(s, yields))
		gleaner_yield(f, s, p);
	GLEANER_AGAIN();
	if (s->phase != GLEANER_YIELD || queue * 5 > most * 4)
		s->low_us = 0;
	GLEANER_AGAIN();
	if (f->una > s->round_end)
		gleaner_round(f, s, p);
	f->word[0] = s->a;
}
FLOW_FN void gleaner_grow(struct flow *f, const struct flow_ack *a, struct gleaner_state *s, const struct gleaner_params *p)
{
	u64 w;
	if (s->phase == GLEANER_START && flow_slow(f)) {
		if ((f->flags & FLOW_STARVED) && !flow_limited(f))
			return;
		s->credit += flow_min(a->acked, 1u << 20) * p->start; /* 2^20 * 2^10 */
		f->cwnd = flow_min(f->cwnd + s->credit / 1000, f->cwnd_max);
		s->credit %= 1000;
		return;
	}
	if (s->phase == GLEANER_START) {
		s->phase = GLEANER_RUN;
		s->since_us = f->now_us;
		s->a = flow_max64(s->a, flow_min64(gleaner_window(f, 1000000, gleaner_time(s)), GLEANER_RATE_MOST));
		s->peak = s->a;
	}
	/* what the pace needs, and a quarter more; 2^36 * 2^26 */
	w = gleaner_pace(f, s, p) * flow_min(s->line.base_us + 2 * gleaner_threshold(f, s, p), 1u << 26) / 1000000;
	f->cwnd = flow_min((u32)flow_min64(flow_div(w + w / 4, f->mss) + 6, 1u << 29), f->cwnd_max);
	if (s->phase == GLEANER_YIELD && gleaner_left(f, s, p) <= gleaner_slowest(f, s, p) && !s->trial_us)
		f->cwnd = flow_min(GLEANER_SHUT, f->cwnd_max);
	f->ssthresh = f->cwnd;
	f->cwnd_cnt = 0;
}
FLOW_FN u32 gleaner_ssthresh(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	int cut;
	if (s->trial_us || s->kept)
		return f->cwnd;
	if (!s->mark.at_us) {
		gleaner_mark(f, &s->mark);
		/* a policer's bucket must not fill before it is seen */
		s->kept = s->guess && !s->policed && s->line.told && s->phase == GLEANER_RUN;
		if (s->kept)
			return f->cwnd;
	}
	GLEANER_AGAIN();
	cut = gleaner_cut(f, s, p);
	f->word[0] = s->a;
	return flow_max(cut ? (u32)((u64)f->cwnd * p->keep / 1000) : f->cwnd, 2);
}
FLOW_FN void gleaner_event(struct flow *f, u32 event, struct gleaner_state *s, const struct gleaner_params *p)
{
	(void)p;
	/* pairs far apart leave nothing in flight between them: they are measured with all the same */
	if (event != FLOW_TX_START || (f->flags & FLOW_STARVED))
		s->line.from_us = 0;
}
FLOW_FN void gleaner_send(struct flow *f, struct gleaner_state *s, const struct gleaner_params *p)
{
	f->pace_Bps = gleaner_pace(f, s, p);
	/* what has left by now shuts the window */
	if (s->phase == GLEANER_YIELD && f->in_flight > GLEANER_SHUT)
		f->pace_Bps = flow_max64(f->pace_Bps, flow_div(8000000ull * f->mss, gleaner_time(s)));
	/* two packets a millisecond and more are TCP's to gather, and so is the first window */
	f->burst = f->pace_Bps >= 2000ull * f->mss ? 0 : s->phase == GLEANER_YIELD || gleaner_pairs(f, f->pace_Bps) ? 2 : 1;
	if (s->phase == GLEANER_START && f->delivered < GLEANER_FIRST)
		f->burst = 0;
	else if (!gleaner_narrow(f, s, p) && gleaner_asks(f, &s->line) && f->in_flight + GLEANER_BUNCH <= f->cwnd) {
		f->burst = GLEANER_BUNCH;
		s->line.asked_us = f->now_us;
	}
}
#endif
