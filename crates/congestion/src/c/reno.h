/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* reno.h: slow start, one packet per RTT after it, half at a loss. RFC 5681 section 3.1.
 *
 * cwnd, ssthresh as in the RFC, in packets. In slow start `acked` is counted without the limit of one SMSS per ACK, and
 * ssthresh is half of cwnd instead of FlightSize: both as in Linux. Certain. */
#ifndef RENO_H
#define RENO_H
#include "flow.h"
#define reno_hooks (FLOW_INIT | FLOW_GROW)
#define reno_KERNEL "pc_reno"
#define reno_PAPER "RFC 5681: TCP Congestion Control, section 3.1"
#define reno_BASIS "certain"
#define reno_PARAMS(P) FLOW_START_PARAM(P)
struct reno_params { reno_PARAMS(FLOW_PARAM_FIELD) };
struct reno_state { u32 unused; };

FLOW_FN void reno_init(struct flow *f, struct reno_state *s, const struct reno_params *p)
{
	(void)s;
	flow_start(f, p->initial_ssthresh_bytes);
}
FLOW_FN void reno_grow(struct flow *f, const struct flow_ack *a, struct reno_state *s, const struct reno_params *p)
{
	(void)s;
	(void)p;
	flow_reno_grow(f, a);
}
#endif
