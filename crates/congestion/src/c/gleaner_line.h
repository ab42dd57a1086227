/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* gleaner_line.h: what the own packets tell of the line, for gleaner.h: the least RTT, the queue, the rate at which packets
 * come out of the queue, and how fast it grows. Ours.
 *
 * No train is sent for it. Whatever leaves within half of an RTT is one: from the first ACK of it to the last, by when their
 * packets left (now - rtt) and when they were acknowledged, D is the rate at which it came out, and s the slope of its
 * delays. A millisecond's worth of packets that segmentation offload sends at once is a small part of it. In a FIFO queue of a
 * line of rate C (Melander, Bjorkman, Gunningberg: TOPP, 2000)
 *     A = R - C s,  R = D (1 + s):    A = D - s (C - D).
 * C is told by packets that leave at once: they stand in the line's queue in a row, whatever others send, and their ACKs come
 * at C. The first window is one such bunch; others are those of segmentation offload, pairs that are acknowledged one by one,
 * and eight packets (`GLEANER_BUNCH`) where none told for ten seconds, or ever. C is the mean of bunches, a quarter for the new one, but never less than D;
 * a minute after the last one it is forgotten by 1/256 a second. */
#ifndef GLEANER_LINE_H
#define GLEANER_LINE_H
#include "flow.h"
#include "flow_pairs.h"
#define GLEANER_RATE_MOST ((u64)1 << 36)
#define GLEANER_RTT_MOST (1u << 24)
#define GLEANER_ONE 1000000ull  /* a slope of 1 */
#define GLEANER_AT_ONCE_US 200  /* packets left at once that left within this time */
#define GLEANER_SPREAD_US 300   /* least time between a bunch's ACKs: clocks and receivers bundle what is closer */
#define GLEANER_BUNCH 8         /* packets of a bunch that is sent for the sake of C */
#define GLEANER_OLD_US 60000000 /* so long a bunch is believed */
#define GLEANER_ASK_US 10000000 /* so long after the last one it is asked again, every eighth of that */
#define GLEANER_LEAST 8         /* packets of a measurement */

struct gleaner_line {
	struct flow_pairs pairs;
	u64 rate, most;             /* D, C [byte/s] */
	u64 told, told_us;          /* C as bunches tell it, 0: none did; when [byte/s] */
	u64 left_us, came_us, behind; /* a bunch's first ACK: when its packet left, when it came, the byte behind it */
	u64 span, bytes, asked_us;  /* from that ACK to the bunch's last one; a bunch was last sent for C */
	u64 from_us, from_una;      /* the measurement's first packet: when it left, the byte behind it */
	u64 una, slot_us, turned_us;
	u32 from_rtt, slope;        /* s [1e-6], 0 if delays fall */
	u32 base_us, recent_us;     /* least RTT; of this window of base_window_s alone */
	u32 now_us, before_us;      /* smallest RTT of this slot and of the one before, 0: none */
	u32 full, high_us;          /* full 1: base_us is of full packets; largest RTT of this RTT */
	u64 turn_us;                /* this RTT began */
	u32 high_before_us, pad;    /* largest RTT of the one before */
};

/* smallest queueing delay of the last two slots */
FLOW_FN u32 gleaner_queue(const struct gleaner_line *l)
{
	u32 rtt = l->before_us && (!l->now_us || l->before_us < l->now_us) ? l->before_us : l->now_us;
	return rtt > l->base_us ? rtt - l->base_us : 0;
}
/* largest queueing delay of one to two RTTs, by any packet */
FLOW_FN u32 gleaner_highest(const struct gleaner_line *l)
{
	u32 rtt = flow_max(l->high_us, l->high_before_us);
	return rtt > l->base_us ? rtt - l->base_us : 0;
}
/* A by the last measurement */
FLOW_FN u64 gleaner_available(const struct gleaner_line *l)
{
	u64 off = (flow_max64(l->most, l->rate) - l->rate) * l->slope / GLEANER_ONE; /* 2^36 * 2^20 */
	return l->rate > off ? l->rate - off : 0;
}
FLOW_FN void gleaner_measure(const struct flow *f, const struct flow_ack *a, struct gleaner_line *l)
{
	u64 sent = f->now_us - a->rtt_us, span = 0, acked = 0;
	if (l->from_us && l->from_us <= sent) {
		span = f->now_us - (l->from_us + l->from_rtt);
		acked = f->una - l->from_una;
		if (span < l->base_us / 2 || acked < (u64)GLEANER_LEAST * f->mss)
			return;
		l->rate = flow_min64(flow_div(flow_min64(acked, 1ull << 43) * 1000000, span), GLEANER_RATE_MOST);
		if (l->rate > l->most) /* by an eighth at a time: ACKs may come in a bunch */
			l->most = l->most ? flow_min64(l->rate, l->most + l->most / 8 + f->mss) : l->rate;
		l->slope = 0;
		if (a->rtt_us > l->from_rtt)
			l->slope = (u32)flow_min64(flow_div((u64)(a->rtt_us - l->from_rtt) * GLEANER_ONE, sent - l->from_us), GLEANER_ONE);
	}
	l->from_us = sent;
	l->from_una = f->una;
	l->from_rtt = a->rtt_us;
}
/* What a bunch that is over tells. */
FLOW_FN void gleaner_tell(const struct flow *f, struct gleaner_line *l)
{
	u64 rate;
	if (l->bytes >= f->mss && l->span >= GLEANER_SPREAD_US) {
		rate = flow_min64(flow_div(l->bytes * 1000000, l->span), GLEANER_RATE_MOST);
		l->told = l->told ? l->told - l->told / 4 + rate / 4 : rate;
		l->told_us = f->now_us;
		l->most = flow_max64(l->most - l->most / 4 + l->told / 4, l->told);
	}
	l->left_us = l->span = l->bytes = 0;
}
/* Packets that left at once. Only the next ACK of others, or a packet that is missing, shows that the bunch is over. */
FLOW_FN void gleaner_bunched(const struct flow *f, const struct flow_ack *a, struct gleaner_line *l)
{
	u64 sent = f->now_us - a->rtt_us;
	if (l->left_us && sent >= l->left_us && sent - l->left_us <= GLEANER_AT_ONCE_US) {
		l->span = f->now_us - l->came_us;
		l->bytes = flow_min64(f->una - l->behind, 1ull << 43);
		return;
	}
	gleaner_tell(f, l);
	l->left_us = sent;
	l->came_us = f->now_us;
	l->behind = f->una;
}
/* Whether it is time to send a bunch for C: while none told, soon again. */
FLOW_FN int gleaner_asks(const struct flow *f, const struct gleaner_line *l)
{
	u64 again = l->told ? GLEANER_ASK_US / 8 : flow_min64(8ull * l->base_us, GLEANER_ASK_US / 8);
	return f->state == FLOW_OPEN && (!l->told || f->now_us - l->told_us > GLEANER_ASK_US) && f->now_us - l->asked_us > again;
}
/* the least RTT of full packets (before the first: of any), of the last one to two windows */
FLOW_FN void gleaner_least(const struct flow *f, const struct flow_ack *a, struct gleaner_line *l, u32 window_s)
{
	u32 full = a->acked && f->una - l->una >= (u64)a->acked * f->mss;
	u32 rtt = flow_min(a->rtt_us, GLEANER_RTT_MOST);
	if (f->now_us - l->turned_us > (u64)window_s * 1000000) {
		l->turned_us = f->now_us;
		if (l->recent_us)
			l->base_us = l->recent_us;
		l->recent_us = 0;
	}
	if (full > l->full) {
		l->base_us = rtt;
		l->recent_us = 0;
		l->full = 1;
	}
	if (full < l->full)
		return;
	if (!l->base_us || rtt < l->base_us)
		l->base_us = rtt;
	if (!l->recent_us || rtt < l->recent_us)
		l->recent_us = rtt;
}
/* an ACK; slots last `filter` thousandths of the least RTT */
FLOW_FN void gleaner_hear(const struct flow *f, const struct flow_ack *a, struct gleaner_line *l, u32 filter, u32 window_s)
{
	int held = flow_pairs_held(&l->pairs, f, a);
	/* whatever held it back, a packet was no longer in the queue than that */
	if (a->rtt_us && (!held || a->rtt_us < gleaner_queue(l) + l->base_us)) {
		gleaner_least(f, a, l, window_s);
		if (f->now_us - l->slot_us >= (u64)l->base_us * filter / 1000) {
			l->slot_us = f->now_us;
			l->before_us = l->now_us;
			l->now_us = 0;
		}
		if (!l->now_us || a->rtt_us < l->now_us)
			l->now_us = flow_min(a->rtt_us, GLEANER_RTT_MOST);
		if (f->now_us - l->turn_us >= l->base_us) {
			l->turn_us = f->now_us;
			l->high_before_us = l->high_us;
			l->high_us = 0;
		}
		l->high_us = flow_max(l->high_us, flow_min(a->rtt_us, GLEANER_RTT_MOST));
		if (f->state != FLOW_OPEN) {
			gleaner_tell(f, l);
			l->from_us = 0;
		} else if (a->acked) {
			gleaner_measure(f, a, l);
			gleaner_bunched(f, a, l);
		}
	}
	l->una = f->una;
}
#endif
