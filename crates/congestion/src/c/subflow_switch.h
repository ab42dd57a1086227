/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* subflow_switch.h: plain slow start for few subflows, GSAM for many.
 * Kojima, Kimura (University of Tsukuba): switching of MPTCP's slow start by the number of subflows.
 *
 * n subflows: n <= N_th: slow start, then LIA ("normal MPTCP"); n > N_th: GSAM. Certain: the rule and N_th = 2.
 * OURS: n is what the connection has now, looked at on every ACK in slow start; a subflow once in GSAM's smooth transition
 * stays in it until congestion avoidance. GSAM itself is a reconstruction, see gsam.h. */
#ifndef SUBFLOW_SWITCH_H
#define SUBFLOW_SWITCH_H
#include "gsam.h"
#define subflow_switch_hooks gsam_hooks
#define subflow_switch_KERNEL "pc_switch"
#define subflow_switch_PAPER "Kojima, Kimura: switching MPTCP congestion control by the number of subflows (University of Tsukuba)"
#define subflow_switch_BASIS "the rule is certain; what happens when the number changes is ours; GSAM is a reconstruction"
#define SUBFLOW_SWITCH_OWN(P) P(subflows, 2, 0, 64, "N_th: GSAM with more subflows than this", "the paper, by experiment")
#define subflow_switch_PARAMS(P) gsam_PARAMS(P) SUBFLOW_SWITCH_OWN(P)
struct subflow_switch_params {
	struct gsam_params gsam;
	SUBFLOW_SWITCH_OWN(FLOW_PARAM_FIELD)
};
struct subflow_switch_state {
	struct gsam_state gsam;
	u32 many; /* n > N_th at the last growth */
};

FLOW_FN void subflow_switch_init(struct flow *f, struct subflow_switch_state *s, const struct subflow_switch_params *p)
{
	gsam_init(f, &s->gsam, &p->gsam);
	s->many = f->group.n > p->subflows;
}
FLOW_FN void subflow_switch_ack(struct flow *f, const struct flow_ack *a, struct subflow_switch_state *s,
				const struct subflow_switch_params *p)
{
	gsam_ack(f, a, &s->gsam, &p->gsam);
}
FLOW_FN void subflow_switch_grow(struct flow *f, const struct flow_ack *a, struct subflow_switch_state *s,
				 const struct subflow_switch_params *p)
{
	u32 acked = a->acked;
	s->many = f->group.n > p->subflows;
	gsam_look(f, &s->gsam, &p->gsam);
	if (!s->many && s->gsam.phase == GSAM_SS && flow_slow(f) && flow_limited(f)) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
	}
	gsam_step(f, acked, &s->gsam, &p->gsam); /* not in slow start: either way LIA, or a transition that goes on */
}
FLOW_FN void subflow_switch_event(struct flow *f, u32 event, struct subflow_switch_state *s,
				  const struct subflow_switch_params *p)
{
	gsam_event(f, event, &s->gsam, &p->gsam);
}
#endif
