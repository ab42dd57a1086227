/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* bbr3_rate.h: samples of the delivery rate, of what was in flight and of what was lost meanwhile, for bbr3.h.
 * draft-ietf-ccwg-bbr, section 4.1 (Delivery Rate Samples).
 *
 * The draft notes with each packet what had been delivered when it left. A controller is told nothing of single packets.
 * OURS: `send` notes the same for up to 8 transmit opportunities a round (marks); the newest packet that an ACK tells of
 * left at now - rtt, and the newest mark from before that is the packet's. A sample is so of up to an eighth of a round more
 * than the draft's. An ACK of nothing but packets sent again has no RTT, and so no sample. */
#ifndef BBR3_RATE_H
#define BBR3_RATE_H
#include "flow.h"

#define BBR3_MARKS 8
#define BBR3_UNIT 30 /* rates are packets per microsecond, in 2^-30 */
#define BBR3_MOST ((u64)1 << 36) /* rates are less: 64 packets a microsecond */
#define BBR3_STARVED 0x80000000u

struct bbr3_mark { /* times are microseconds modulo 2^32 */
	u32 sent_us, delivered, delivered_us, first_us; /* first: when the newest packet delivered by then had left */
	u32 lost, in_flight;                            /* in_flight with BBR3_STARVED */
};
struct bbr3_rate {
	struct bbr3_mark of, ahead[BBR3_MARKS]; /* the newest that is not newer than what was delivered; those that are */
	u32 delivered, delivered_us, first_us, lost, marked_us, bubble;
	u8 head, n, known, bubbles; /* known: `of` is one; bubbles: starved, by our own doing, until `bubble` is delivered */
};
struct bbr3_sample {
	u64 rate;                   /* 0: none */
	u32 sent_us, timed;         /* when the newest packet left, if timed */
	u32 delivered, in_flight, lost; /* since that packet left; in flight then */
	u32 newly, newly_lost, starved;
};

FLOW_FN int bbr3_before(u32 a, u32 b) { return a - b >= 0x80000000u; }

FLOW_FN void bbr3_rate_mark(const struct flow *f, struct bbr3_rate *r)
{
	struct bbr3_mark *m = &r->ahead[((u32)r->head + r->n) & (BBR3_MARKS - 1)];
	u32 starved = (f->flags & FLOW_STARVED) || r->bubbles ? BBR3_STARVED : 0;
	m->sent_us = r->marked_us = (u32)f->now_us;
	m->delivered = r->delivered;
	m->delivered_us = r->delivered_us;
	m->first_us = r->first_us;
	m->lost = r->lost;
	m->in_flight = ((f->in_flight + 1) & 0x7fffffffu) | starved;
	r->n++;
}
/* A packet leaves and nothing was in flight: a sample begins now. */
FLOW_FN void bbr3_rate_start(const struct flow *f, struct bbr3_rate *r)
{
	r->first_us = r->delivered_us = (u32)f->now_us;
	r->head = r->n = r->known = 0;
	bbr3_rate_mark(f, r);
}
FLOW_FN void bbr3_rate_init(const struct flow *f, struct bbr3_rate *r)
{
	r->delivered = f->delivered;
	r->lost = f->lost;
	bbr3_rate_start(f, r);
}
/* Packets may leave now. */
FLOW_FN void bbr3_rate_send(const struct flow *f, struct bbr3_rate *r)
{
	if (r->n < BBR3_MARKS && (u32)f->now_us - r->marked_us >= f->srtt_us / BBR3_MARKS)
		bbr3_rate_mark(f, r);
}
/* What leaves from now on says nothing of the path's rate, until all that is in flight is delivered. */
FLOW_FN void bbr3_rate_starve(const struct flow *f, struct bbr3_rate *r)
{
	r->bubble = f->delivered + f->in_flight;
	r->bubbles = 1;
}
FLOW_FN void bbr3_rate_ack(struct flow *f, const struct flow_ack *a, struct bbr3_rate *r, u32 min_rtt_us, struct bbr3_sample *o)
{
	u32 now = (u32)f->now_us, interval, i;
	o->newly = f->delivered - r->delivered;
	o->newly_lost = f->lost - r->lost;
	r->delivered = f->delivered;
	r->lost = f->lost;
	if (o->newly)
		r->delivered_us = now;
	if (r->bubbles && bbr3_before(r->bubble, f->delivered))
		r->bubbles = 0;
	o->timed = a->rtt_us && o->newly;
	o->sent_us = now - a->rtt_us;
	if (o->timed) {
		if (bbr3_before(r->first_us, o->sent_us))
			r->first_us = o->sent_us;
		for (i = 0; i < BBR3_MARKS; i++) {
			struct bbr3_mark *m = &r->ahead[r->head & (BBR3_MARKS - 1)];
			if (!r->n || bbr3_before(o->sent_us, m->sent_us))
				break;
			r->of = *m;
			r->head = (r->head + 1) & (BBR3_MARKS - 1);
			r->n--;
			r->known = 1;
		}
	}
	o->rate = 0;
	o->delivered = o->in_flight = o->lost = 0;
	o->starved = (f->flags & FLOW_STARVED) != 0;
	if (!r->known)
		return;
	o->delivered = flow_min(f->delivered - r->of.delivered, 1u << 30);
	o->in_flight = r->of.in_flight & ~BBR3_STARVED;
	o->starved = r->of.in_flight >> 31;
	o->lost = flow_min(f->lost - r->of.lost, 1u << 30);
	interval = flow_max(now - r->of.delivered_us, r->first_us - r->of.first_us);
	if (o->timed && interval && interval >= min_rtt_us)
		o->rate = flow_min64(((u64)o->delivered << BBR3_UNIT) / interval, BBR3_MOST); /* <= 2^60 */
}
#endif
