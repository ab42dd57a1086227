/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* controller.h: the hooks of the controller CC with the defaults of flow.h for those that it leaves out, and its
 * parameters. The shim calls them on the view of a socket, the tests on views of their own. */
#ifndef CONTROLLER_H
#define CONTROLLER_H
#include "flow.h"

#define SHIM_CAT2(a, b) a##b
#define SHIM_CAT(a, b) SHIM_CAT2(a, b)
#define CC_(part) SHIM_CAT(CC, part)
#define STATE struct CC_(_state)
#define HAS(hook) (CC_(_hooks) & (hook))

/* in a section of their own, of which user space may change the bytes while flows live */
struct CC_(_params) params SEC(".data") = { CC_(_PARAMS)(FLOW_PARAM_DEFAULT) };

static __always_inline void clear_post(struct flow *f)
{
	f->post_to = FLOW_NOBODY;
	f->post = 0;
}
static __always_inline void call_init(struct flow *f, STATE *s)
{
	clear_post(f);
#if HAS(FLOW_INIT)
	CC_(_init)(f, s, &params);
#endif
	f->cwnd = flow_max(f->cwnd, 1);
}
static __always_inline void call_ack(struct flow *f, const struct flow_ack *a, STATE *s)
{
#if HAS(FLOW_ACK)
	CC_(_ack)(f, a, s, &params);
#endif
}
static __always_inline void call_grow(struct flow *f, const struct flow_ack *a, STATE *s)
{
	clear_post(f);
#if HAS(FLOW_GROW)
	CC_(_grow)(f, a, s, &params);
#else
	flow_reno_grow(f, a);
#endif
	f->cwnd = flow_max(f->cwnd, 1);
}
static __always_inline u32 call_ssthresh(struct flow *f, STATE *s)
{
#if HAS(FLOW_SSTHRESH)
	return CC_(_ssthresh)(f, s, &params);
#else
	return flow_half(f);
#endif
}
static __always_inline u32 call_undo(struct flow *f, STATE *s)
{
#if HAS(FLOW_UNDO)
	return CC_(_undo)(f, s, &params);
#else
	return flow_undo(f);
#endif
}
static __always_inline void call_event(struct flow *f, u32 event, STATE *s)
{
#if HAS(FLOW_EVENT)
	CC_(_event)(f, event, s, &params);
#endif
}
static __always_inline void call_send(struct flow *f, STATE *s)
{
#if HAS(FLOW_SEND)
	CC_(_send)(f, s, &params);
#endif
}
static __always_inline void call_release(struct flow *f, STATE *s)
{
#if HAS(FLOW_RELEASE)
	CC_(_release)(f, s, &params);
#endif
}
#endif
