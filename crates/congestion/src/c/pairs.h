/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* pairs.h: whether the receiver acknowledges pairs of packets (delayed ACKs, RFC 1122). It holds the ACK of a lone packet back
 * then, for 40 ms and more, and that packet's RTT says nothing of a queue. Ours.
 *
 * An ACK of several packets tells such a receiver. It may also be the first one after a lost ACK, or of a hole that was
 * filled (the latter does not count: it comes outside of Open); then ACKs of one packet follow closely, which a receiver of
 * pairs sends only while it opens its window. So that the first sets a score, the second lowers it. */
#ifndef PAIRS_H
#define PAIRS_H
#include "flow.h"
#define PAIRS_SEVERAL 2     /* points for an ACK of several packets */
#define PAIRS_MOST 64       /* a receiver of pairs begins with up to 16 ACKs of one packet */
#define PAIRS_CLOSE_US 20000 /* half of the shortest delay of an ACK */

struct pairs {
	u64 lone_us; /* the last ACK of one packet, if none of several came since */
	u32 score, pad;
};

/* Takes an ACK in; whether its packet may have waited for another. */
FLOW_FN int pairs_held(struct pairs *s, const struct flow *f, const struct flow_ack *a)
{
	if (a->acked > 1) {
		s->lone_us = 0;
		if (f->state == FLOW_OPEN)
			s->score = flow_min(s->score + PAIRS_SEVERAL, PAIRS_MOST);
		return 0;
	}
	if (!a->acked)
		return 0;
	if (s->score && s->lone_us && f->now_us - s->lone_us < PAIRS_CLOSE_US)
		s->score--;
	s->lone_us = f->now_us;
	return s->score != 0;
}
#endif
