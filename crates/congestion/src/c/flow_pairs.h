/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* flow_pairs.h: whether the receiver acknowledges pairs of packets (delayed ACKs, RFC 1122). It holds the ACK of a lone packet
 * back then, for 40 ms and more, and that packet's RTT says nothing of a queue. Ours.
 *
 * An ACK of several packets tells such a receiver, but one may come after a lost ACK, too. (That of a hole which was filled
 * does not count: it comes outside of Open.) Then ACKs of one packet follow closely, as a receiver of pairs sends none, but
 * for the first ones of a connection. So the one gives points, the other takes them. */
#ifndef FLOW_PAIRS_H
#define FLOW_PAIRS_H
#include "flow.h"
#define FLOW_PAIRS_SEVERAL 2      /* points for an ACK of several packets */
#define FLOW_PAIRS_MOST 64        /* now and then up to 16 ACKs of one packet come from a receiver of pairs */
#define FLOW_PAIRS_CLOSE_US 20000 /* half of the shortest delay of an ACK */

struct flow_pairs {
	u64 lone_us; /* the last ACK of one packet, if none of several came since */
	u32 score, pad;
};

/* Takes an ACK in; whether its packet may have waited for another. */
FLOW_FN int flow_pairs_held(struct flow_pairs *s, const struct flow *f, const struct flow_ack *a)
{
	if (a->acked > 1) {
		s->lone_us = 0;
		if (f->state == FLOW_OPEN)
			s->score = flow_min(s->score + FLOW_PAIRS_SEVERAL, FLOW_PAIRS_MOST);
		return 0;
	}
	if (!a->acked)
		return 0;
	if (s->score && s->lone_us && f->now_us - s->lone_us < FLOW_PAIRS_CLOSE_US)
		s->score--;
	s->lone_us = f->now_us;
	return s->score != 0;
}
#endif
