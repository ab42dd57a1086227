/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* flow_export.h: included once per controller with CC defined as its name; makes `flow_export_CC`, its row of the register,
 * with the defaults filled in for the hooks that it leaves out. Native build only. */
#ifndef FLOW_EXPORT_H
#define FLOW_EXPORT_H
#include "flow.h"
struct flow_param {
	const char *name;
	u32 def, lo, hi, pad;
	const char *text, *source;
};
struct flow_controller {
	const char *name, *kernel, *paper, *basis;
	u32 hooks, state_size, n_params, pad;
	const struct flow_param *params;
	void (*init)(struct flow *, void *, const void *);
	void (*ack)(struct flow *, const struct flow_ack *, void *, const void *);
	void (*grow)(struct flow *, const struct flow_ack *, void *, const void *);
	u32 (*ssthresh)(struct flow *, void *, const void *);
	u32 (*undo)(struct flow *, void *, const void *);
	void (*event)(struct flow *, u32, void *, const void *);
	void (*send)(struct flow *, void *, const void *);
	void (*release)(struct flow *, void *, const void *);
};
#define FLOW_CAT2(a, b) a##b
#define FLOW_CAT(a, b) FLOW_CAT2(a, b)
#define FLOW_STR2(a) #a
#define FLOW_STR(a) FLOW_STR2(a)
#define FLOW_ROW(name, def, lo, hi, text, source) { #name, def, lo, hi, 0, text, source },
#define FLOW_ONE(name, def, lo, hi, text, source) +1
#define CC_(part) FLOW_CAT(CC, part)
#define CC_STATE struct CC_(_state)
#define CC_PARAMS struct CC_(_params)
#endif

_Static_assert(sizeof(CC_STATE) <= 512, "private state is at most 512 bytes");
_Static_assert(sizeof(CC_PARAMS) == 4 * (0 CC_(_PARAMS)(FLOW_ONE)), "every parameter has a row, and every row a field");

static const struct flow_param CC_(_rows)[] = { CC_(_PARAMS)(FLOW_ROW) };

static void CC_(_x_init)(struct flow *f, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_INIT
	CC_(_init)(f, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)f, (void)s, (void)p;
#endif
}
static void CC_(_x_ack)(struct flow *f, const struct flow_ack *a, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_ACK
	CC_(_ack)(f, a, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)f, (void)a, (void)s, (void)p;
#endif
}
static void CC_(_x_grow)(struct flow *f, const struct flow_ack *a, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_GROW
	CC_(_grow)(f, a, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)s, (void)p;
	flow_reno_grow(f, a);
#endif
}
static u32 CC_(_x_ssthresh)(struct flow *f, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_SSTHRESH
	return CC_(_ssthresh)(f, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)s, (void)p;
	return flow_half(f);
#endif
}
static u32 CC_(_x_undo)(struct flow *f, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_UNDO
	return CC_(_undo)(f, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)s, (void)p;
	return flow_undo(f);
#endif
}
static void CC_(_x_event)(struct flow *f, u32 event, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_EVENT
	CC_(_event)(f, event, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)f, (void)event, (void)s, (void)p;
#endif
}
static void CC_(_x_send)(struct flow *f, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_SEND
	CC_(_send)(f, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)f, (void)s, (void)p;
#endif
}
static void CC_(_x_release)(struct flow *f, void *s, const void *p)
{
#if CC_(_hooks) & FLOW_RELEASE
	CC_(_release)(f, (CC_STATE *)s, (const CC_PARAMS *)p);
#else
	(void)f, (void)s, (void)p;
#endif
}
static const struct flow_controller FLOW_CAT(flow_export_, CC) = {
	FLOW_STR(CC), CC_(_KERNEL), CC_(_PAPER), CC_(_BASIS),
	CC_(_hooks), sizeof(CC_STATE), sizeof(CC_PARAMS) / 4, 0, CC_(_rows),
	CC_(_x_init), CC_(_x_ack), CC_(_x_grow), CC_(_x_ssthresh), CC_(_x_undo), CC_(_x_event), CC_(_x_send), CC_(_x_release),
};
#undef CC
