/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* lisa.h: the Linked Slow-Start Algorithm: a new subflow takes its first window from the fastest one in slow start.
 * draft-barik-mptcp-lisa-01, section 3. Congestion avoidance is LIA.
 *
 * Once, before a new subflow sends: old = the subflow in slow start with the largest rate cwnd / rtt.
 *   none: new = 10.  old >= 20: old -= 10, new = 10.  old >= 6: new = old / 2, old -= new.  else new = 3, nothing taken.
 *   If then inflight(old) > old: old does not grow for inflight - old packets acked (ACKs_To_Ignore).
 * Certain (the draft prints "new -= old / 2", taken as "="). OURS: the old subflow gives when it next may grow (a flow can
 * only be asked), not if it has left slow start by then, and never below 3; a newcomer counts what others already asked. */
#ifndef LISA_H
#define LISA_H
#include "lia.h"
#define lisa_hooks (FLOW_INIT | FLOW_GROW)
#define lisa_KERNEL "pc_lisa"
#define lisa_PAPER "Barik et al.: LISA: A Linked Slow-Start Algorithm for MPTCP, draft-barik-mptcp-lisa-01"
#define lisa_BASIS "certain; the way in which the old subflow is told is ours"
#define lisa_PARAMS(P) \
	FLOW_START_PARAM(P) \
	P(first_most, 10, 1, 1000, "largest first window of a new subflow [packet]", "draft-barik-mptcp-lisa-01, RFC 6928") \
	P(first_least, 3, 1, 1000, "least first window of a new subflow [packet]", "draft-barik-mptcp-lisa-01, RFC 3390")
struct lisa_params { lisa_PARAMS(FLOW_PARAM_FIELD) };
struct lisa_state { u32 ignore, given, taken, need; };

FLOW_FN void lisa_init(struct flow *f, struct lisa_state *s, const struct lisa_params *p)
{
	u64 best_cwnd = 0, best_srtt = 1, best = FLOW_NOBODY, least = p->first_least, most = flow_max(p->first_most, p->first_least);
	flow_start(f, p->initial_ssthresh_bytes);
	least = flow_forget(f, least) & 0xffffffff;
	most = flow_forget(f, most) & 0xffffffff;
	if (f->group.n <= 1)
		return; /* the first subflow starts as TCP does */
	for (u32 i = 0; i < FLOW_PEERS; i++) {
		const struct flow_peer *q = &f->group.peer[i];
		u64 cwnd = flow_forget(f, q->cwnd > q->mail ? q->cwnd - q->mail : 0) & 0xffffffff, srtt, take;
		take = flow_forget(f, i != f->self && q->used && q->srtt_us && q->cwnd < q->ssthresh);
		srtt = flow_forget(f, q->srtt_us) & 0xffffffff;
		take = flow_forget(f, take && cwnd * best_srtt > best_cwnd * srtt); /* both below 2^64 */
		best = flow_forget(f, take ? i : best);
		best_cwnd = flow_forget(f, take ? cwnd : best_cwnd) & 0xffffffff;
		best_srtt = flow_forget(f, take ? srtt : best_srtt) & 0xffffffff;
	}
	if (best == FLOW_NOBODY) {
		f->cwnd = (u32)most;
	} else if (best_cwnd >= 2 * most) {
		s->taken = (u32)most;
	} else if (best_cwnd >= 2 * least) {
		s->taken = (u32)(best_cwnd / 2);
	} else {
		f->cwnd = (u32)least;
	}
	if (s->taken) {
		f->cwnd = s->taken;
		f->post_to = (u32)best;
		f->post = s->taken;
	}
	f->cwnd = flow_max(flow_min(f->cwnd, f->cwnd_max), 1);
}
FLOW_FN void lisa_grow(struct flow *f, const struct flow_ack *a, struct lisa_state *s, const struct lisa_params *p)
{
	u32 acked = a->acked;
	if (f->mail && flow_slow(f) && f->cwnd > p->first_least) {
		u32 give = flow_min(f->mail, f->cwnd - p->first_least);
		f->cwnd -= give;
		s->given += give;
		/* this ACK's packets were in flight too */
		if ((u64)f->in_flight + acked > f->cwnd)
			s->ignore = f->in_flight + acked - f->cwnd;
	}
	if (f->state == FLOW_LOSS) /* what was in flight is lost */
		s->ignore = 0;
	if (s->ignore) {
		u32 skip = flow_min(acked, s->ignore);
		s->ignore -= skip;
		acked -= skip;
		if (!acked)
			return;
	}
	lia_step(f, acked, &s->need);
}
#endif
