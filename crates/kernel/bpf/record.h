/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* record.h: the test build. Every call of a live flow's controller is written to a ring, with all that went in and came out;
 * and a program that user space runs makes single calls on a view of its own. Both are replayed natively and must agree to
 * the byte. Released objects contain none of it. */
#ifndef RECORD_H
#define RECORD_H
#include "socket.h"

enum { CALL_INIT, CALL_ACK, CALL_GROW, CALL_SSTHRESH, CALL_UNDO, CALL_EVENT, CALL_SEND, CALL_RELEASE };

#ifdef SHIM_TEST
struct call { /* mirrored in tests/bits/mod.rs */
	u64 socket;
	u32 hook, event, result, pad;
	struct flow before;
	struct flow_ack a;
	u32 cwnd, cwnd_cnt, ssthresh, burst;
	u64 pace_Bps, word[FLOW_WORDS];
	u32 post_to, post;
	u32 window, pad2;
	u64 s[(sizeof(STATE) + 7) / 8];
};
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} calls SEC(".maps");

static __always_inline struct call *begin(struct mem *m, u32 hook, u32 event)
{
	struct call *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);
	if (!r) {
		count(&counts.lost, 1);
		return 0;
	}
	r->socket = m->id;
	r->hook = hook;
	r->event = event;
	r->before = m->f;
	r->a = m->a;
	return r;
}
static __always_inline void end(struct call *r, struct mem *m, u32 result)
{
	if (!r)
		return;
	r->result = result;
	r->pad = 0;
	r->cwnd = m->f.cwnd;
	r->cwnd_cnt = m->f.cwnd_cnt;
	r->ssthresh = m->f.ssthresh;
	r->burst = m->f.burst;
	r->pace_Bps = m->f.pace_Bps;
	r->word[0] = m->f.word[0];
	r->word[1] = m->f.word[1];
	r->post_to = m->f.post_to;
	r->post = m->f.post;
	r->window = m->f.window;
	r->pad2 = 0;
	r->s[sizeof(r->s) / 8 - 1] = 0; /* the last one may be half used */
	__builtin_memcpy(r->s, &m->s, sizeof(m->s));
	bpf_ringbuf_submit(r, 0);
}
#define RECORDED(m, hook, event, result, does) \
	do { \
		struct call *r_ = begin(m, hook, event); \
		does; \
		end(r_, m, result); \
	} while (0)

struct trial { /* mirrored in tests/bits/mod.rs */
	u32 hook, event, result, pad;
	struct flow f;
	struct flow_ack a;
	STATE s;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct trial);
} trials SEC(".maps");

SEC("syscall") int trial(void *context)
{
	u32 zero = 0;
	struct trial *t = bpf_map_lookup_elem(&trials, &zero);
	if (!t)
		return 1;
	switch (t->hook) {
	case CALL_INIT: call_init(&t->f, &t->s); break;
	case CALL_ACK: call_ack(&t->f, &t->a, &t->s); break;
	case CALL_GROW: call_grow(&t->f, &t->a, &t->s); break;
	case CALL_SSTHRESH: t->result = call_ssthresh(&t->f, &t->s); break;
	case CALL_UNDO: t->result = call_undo(&t->f, &t->s); break;
	case CALL_EVENT: call_event(&t->f, t->event, &t->s); break;
	case CALL_SEND: call_send(&t->f, &t->s); break;
	case CALL_RELEASE: call_release(&t->f, &t->s); break;
	default: return 2;
	}
	return 0;
}
#else
#define RECORDED(m, hook, event, result, does) does
#endif
#endif
