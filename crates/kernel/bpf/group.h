/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* group.h: what the subflows of a connection know of each other: reports, snapshots and mail. The same rules as in
 * `Connection` of pathcast-congestion. No helper is called under the lock; what needs arithmetic works on the snapshot. */
#ifndef GROUP_H
#define GROUP_H
#include "socket.h"

struct group {
	struct bpf_spin_lock lock;
	u32 token;  /* of the connection: tells it from a later one at the same address */
	u32 taken;  /* slots, a bit each */
	u32 pad;
	struct flow_group g;
};
_Static_assert(FLOW_PEERS < 32, "the slots are bits of a u32");

#ifndef CC_UNCOUPLED
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, u64); /* the address of the MPTCP socket */
	__type(value, struct group);
} groups SEC(".maps");
#endif
/* an empty entry of any map: some are too large for the stack */
static const u64 nothing[128] = {};
_Static_assert(sizeof(struct group) <= sizeof(nothing), "group");

/* The entry of a map, made empty if it is not there; nothing if the map is full. */
static __always_inline void *entry(void *map, const void *key)
{
	void *found = bpf_map_lookup_elem(map, key);
	if (found)
		return found;
	bpf_map_update_elem(map, key, nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* Where the socket belongs to. */
static __always_inline void identify(struct sock *sk, struct mem *m)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mptcp_subflow_context *context;
	if (!bpf_core_field_exists(tp->is_mptcp) || !tp->is_mptcp)
		return;
	context = tp->inet_conn.icsk_ulp_data;
	m->key = (u64)BPF_CORE_READ(context, conn);
	m->token = BPF_CORE_READ(context, token);
	m->subflow = BPF_CORE_READ(context, subflow_id);
}
static __always_inline void report(const struct flow *f, struct flow_peer *q)
{
	q->cwnd = f->cwnd;
	q->ssthresh = f->ssthresh;
	q->srtt_us = f->srtt_us;
	q->in_flight = f->in_flight;
	q->word[0] = f->word[0];
	q->word[1] = f->word[1];
}
static __always_inline void alone(struct mem *m)
{
	struct flow *f = &m->f;
	if (m->key) { /* forget whom it has heard of */
		m->key = 0;
		__builtin_memset(&f->group, 0, sizeof(f->group));
	}
	f->self = 0;
	f->group.n = f->group.joins = 1;
	f->group.peer[0].used = f->group.peer[0].id = 1;
	report(f, &f->group.peer[0]);
}

#ifdef CC_UNCOUPLED /* the controller never looks at siblings, so nobody copies them for it */
static __always_inline void join(struct mem *m)
{
	m->key = 0;
	alone(m);
}
static __always_inline void meet(struct mem *m, int take) { alone(m); }
static __always_inline void deliver(struct mem *m) {}
static __always_inline void leave(struct mem *m) {}
#else
/* The lowest slot that is not taken: as many as there are ones below the lowest zero. Without branches, for the verifier's
 * sake; clang 14 has no such instruction for it. */
static __always_inline u32 lowest_free(u32 taken)
{
	u32 below = taken & ~(taken + 1);
	below -= below >> 1 & 0x55555555;
	below = (below & 0x33333333) + (below >> 2 & 0x33333333);
	below = (below + (below >> 4)) & 0x0f0f0f0f;
	return below * 0x01010101 >> 24;
}
/* Shows the flow the group. Few connections have more than four subflows, and what is neither taken nor was when the flow
 * last looked is empty on both sides. */
static __always_inline void show(struct mem *m, const struct group *c)
{
	struct few {
		u32 n, joins;
		struct flow_peer peer[4];
	};
	_Static_assert(sizeof(struct few) == __builtin_offsetof(struct flow_group, peer[4]), "the head of a flow_group");
	u32 taken = c->taken;
	if ((taken | m->shown) >> 4)
		m->f.group = c->g;
	else
		*(struct few *)&m->f.group = *(const struct few *)&c->g;
	m->shown = taken;
}
/* Takes the lowest free slot, and shows the flow the group. */
static __always_inline void join(struct mem *m)
{
	struct flow *f = &m->f;
	struct group *c;
	u64 key = m->key;
	u32 slot;
	if (!key) {
		alone(m);
		return;
	}
	c = entry(&groups, &key);
	if (!c) {
		count(&counts.ungrouped, 1);
		alone(m);
		return;
	}
	bpf_spin_lock(&c->lock);
	if (c->token != m->token) {
		c->token = m->token;
		c->taken = 0;
		__builtin_memset(&c->g, 0, sizeof(c->g));
	}
	slot = lowest_free(c->taken);
	if (slot < FLOW_PEERS) {
		struct flow_peer *q = &c->g.peer[slot];
		c->taken |= 1u << slot;
		c->g.n++;
		q->used = 1;
		q->id = ++c->g.joins;
		q->mail = 0;
		report(f, q);
		show(m, c);
	}
	bpf_spin_unlock(&c->lock);
	if (slot >= FLOW_PEERS) {
		count(&counts.ungrouped, 1);
		alone(m);
		return;
	}
	m->slot = f->self = slot;
}
/* The flow's own group and slot in it; nothing for a group of its own. */
static __always_inline struct group *own(struct mem *m, u32 *slot)
{
	u64 key = m->key;
	u32 at = m->slot;
	if (!key || at >= FLOW_PEERS)
		return 0;
	*slot = at;
	return bpf_map_lookup_elem(&groups, &key);
}
/* Reports the flow to its siblings and shows it the group; with `take`, its mail is handed over. */
static __always_inline void meet(struct mem *m, int take)
{
	struct flow *f = &m->f;
	u32 slot = 0, same;
	struct group *c = own(m, &slot);
	if (!c) {
		alone(m);
		return;
	}
	bpf_spin_lock(&c->lock);
	same = c->token == m->token;
	if (same) {
		struct flow_peer *q = &c->g.peer[slot];
		report(f, q);
		if (take) {
			f->mail = q->mail;
			q->mail = 0;
		}
		show(m, c);
	}
	bpf_spin_unlock(&c->lock);
	if (!same)
		alone(m);
}
/* Puts what the flow asks of a sibling into that sibling's mail. */
static __always_inline void deliver(struct mem *m)
{
	u32 slot = 0, to = m->f.post_to, post = m->f.post, mail;
	struct group *c;
	if (to >= FLOW_PEERS)
		return;
	c = own(m, &slot);
	if (!c)
		return;
	bpf_spin_lock(&c->lock);
	if (c->token == m->token && c->taken >> to & 1) {
		mail = c->g.peer[to].mail + post;
		c->g.peer[to].mail = mail < post ? 0xffffffff : mail;
	}
	bpf_spin_unlock(&c->lock);
}
/* Frees the slot; the last one out removes the group. */
static __always_inline void leave(struct mem *m)
{
	u64 key = m->key;
	u32 slot = 0, last = 0;
	struct group *c = own(m, &slot);
	if (!c)
		return;
	bpf_spin_lock(&c->lock);
	if (c->token == m->token) {
		__builtin_memset(&c->g.peer[slot], 0, sizeof(struct flow_peer));
		c->g.n--;
		c->taken &= ~(1u << slot);
		last = !c->taken;
	}
	bpf_spin_unlock(&c->lock);
	if (last)
		bpf_map_delete_elem(&groups, &key);
}
#endif
#endif
