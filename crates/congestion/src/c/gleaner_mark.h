/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* gleaner_mark.h: what comes in the RTT after a packet was found lost, for gleaner.h. Ours.
 *
 * It left in the RTT after the lost packet did, when the bucket of a policer was empty, if there is one: so much of it is missing
 * as was more than the policer's rate, all along. A wire loses a burst in one part of it; a queue that is full tells of itself. */
#ifndef GLEANER_MARK_H
#define GLEANER_MARK_H
#include "flow.h"
#define GLEANER_ROW 4 /* packets that may be lost at once by chance */

struct gleaner_mark {
	u64 at_us;                 /* 0: none, or the RTT is over */
	u32 delivered, flight;     /* by then; in flight */
	u32 lost, quarter, spread; /* by the last quarter of the RTT; which; so many of them had losses */
	u32 pad;
};

FLOW_FN void gleaner_mark(const struct flow *f, struct gleaner_mark *m)
{
	m->at_us = f->now_us;
	m->delivered = f->delivered;
	m->flight = f->in_flight;
	m->lost = f->lost;
	m->quarter = m->spread = 0;
}
/* Whether the RTT after it is over. */
FLOW_FN int gleaner_marked(const struct flow *f, struct gleaner_mark *m, u64 rtt_us)
{
	u32 quarter = (u32)flow_min64(flow_div((f->now_us - m->at_us) * 4, rtt_us), 4);
	if (quarter > m->quarter) {
		m->spread += f->lost != m->lost;
		m->lost = f->lost;
		m->quarter = quarter;
	}
	return quarter == 4;
}
/* packets */
FLOW_FN u32 gleaner_came(const struct flow *f, const struct gleaner_mark *m) { return flow_min(f->delivered - m->delivered, 1u << 24); }
/* Of what was in flight `share` thousandths and more did not come. */
FLOW_FN int gleaner_missing(const struct flow *f, const struct gleaner_mark *m, u32 share)
{
	u32 gone = m->flight - flow_min(m->flight, gleaner_came(f, m));
	return gone > GLEANER_ROW && (u64)gone * 1000 >= (u64)m->flight * share;
}
#endif
