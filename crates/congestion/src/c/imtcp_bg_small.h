/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* imtcp_bg_small.h: what ImTCP-bg does beyond its paper on paths of few packets. All of it OURS; with `small` at 0 none of
 * it is there.
 *
 * So that delta measures the queue of others:
 * - RTTmin is that of full packets (before the first: of any): the line takes longer for them than for a handshake's.
 * - A window too small for a train leaves packet by packet, a gap of 5/6 RTTmin / cwnd apart, as two in a row would queue
 *   behind each other; but IMTCP_SMALL_GAP_MOST at most, as the receiver waits so long (and longer) for a second packet.
 * - After `stuck` inaccurate rounds in a row at a window of 2 it is 3 for once: what can look like a queue without being
 *   one, as ACKs delayed by a timer do, cannot hold it there.
 * On a small path, whose largest A times RTTmin is below `small` packets, a queue of a train's few packets is a large part of
 * its RTT, and a page is over in a few of them. Unless nobody has competed for `quiet` rounds, RTTcur is of the last round
 * only, there is no growth after an inaccurate one, and, unlike the paper's, its window falls as if the queueing delay were
 * `yield` times as long. */
#ifndef IMTCP_BG_SMALL_H
#define IMTCP_BG_SMALL_H
#include "flow.h"
#define IMTCP_SMALL_PARAMS(P) \
	P(stuck, 16, 1, 100000, "inaccurate rounds at a window of 2 after which it is 3 once", "ours") \
	P(small, 50, 0, 100000, "a path of fewer packets, by the largest A, is small; 0: nothing of what is ours for paths of few packets", "ours") \
	P(yield, 2500, 1000, 100000, "there, how many times the queueing delay counts in the reduction [1/1000]", "ours")
struct imtcp_small_params { IMTCP_SMALL_PARAMS(FLOW_PARAM_FIELD) };
struct imtcp_small_state {
	u64 most_Bps;   /* the largest A */
	u64 una;        /* at the last ACK */
	u32 full, held; /* 1: RTTmin is of full packets; 1: no growth in this round */
	u32 stuck, pad; /* inaccurate rounds at a window of 2 */
};
#define IMTCP_SMALL_GAP_MOST 10000 /* us */
#define IMTCP_SMALL_RTT_MOST (1u << 24)

/* whether RTTmin becomes a sample, which `below` is that lies below it */
FLOW_FN u32 imtcp_small_least(const struct flow *f, const struct flow_ack *a, struct imtcp_small_state *s,
			      const struct imtcp_small_params *p, u32 below)
{
	u32 full = a->acked && f->una - s->una >= (u64)a->acked * f->mss;
	u32 least = full > s->full || (full == s->full && below);
	if (!p->small)
		return below;
	s->full |= full;
	return least;
}
/* others compete on a small path */
FLOW_FN u32 imtcp_small_near(const struct flow *f, const struct imtcp_small_state *s, const struct imtcp_small_params *p,
			     u32 rtt_min_us, u32 competed)
{
	/* 2^36 * 2^24; 2^17 * 2^16 * 2^20 */
	u64 path = s->most_Bps * flow_min(rtt_min_us, IMTCP_SMALL_RTT_MOST);
	return competed && path && path < (u64)p->small * flow_min(f->mss, 1u << 16) * 1000000;
}
/* an inaccurate round: how many thousandths the queueing delay counts */
FLOW_FN u32 imtcp_small_weight(struct imtcp_small_state *s, const struct imtcp_small_params *p, u32 near)
{
	s->held = near;
	return near ? p->yield : 1000;
}
/* an inaccurate round: whether the window has been at 2 for too long, and grows */
FLOW_FN u32 imtcp_small_stuck(const struct flow *f, struct imtcp_small_state *s, const struct imtcp_small_params *p)
{
	s->stuck = p->small && f->cwnd <= 2 ? s->stuck + 1 : 0;
	if (s->stuck < p->stuck || f->cwnd >= f->cwnd_max)
		return 0;
	s->stuck = 0;
	return 1;
}
/* a window too small for a train; slow start is soon over */
FLOW_FN void imtcp_small_pace(struct flow *f, const struct imtcp_small_params *p, u32 rtt_min_us, u32 rtt_least_us)
{
	u32 gap;
	if (!p->small || flow_slow(f) || rtt_min_us < flow_max(rtt_least_us, 1))
		return;
	gap = flow_max((u32)flow_div((u64)rtt_min_us * 5, (u64)f->cwnd * 6), 1);
	f->burst = 1;
	f->pace_Bps = flow_max64(flow_div((u64)f->mss * 1000000, flow_min(gap, IMTCP_SMALL_GAP_MOST)), 1);
}
#endif
