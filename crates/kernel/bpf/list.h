/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* list.h: the list of live flows that user space reads, and the sums of those that ended, by path. A row is as old as the
 * last ACK, or up to LIST_US older; the sums are exact. */
#ifndef LIST_H
#define LIST_H
#include "group.h"

#define LIST_US 20000

struct address {               /* mirrored in src/flows.rs */
	u8 local[16], remote[16]; /* IPv4: the first four bytes */
	u32 family, pad;
};
struct row {                   /* mirrored in src/flows.rs */
	struct address address;
	u16 local_port, remote_port;
	u32 token, subflow, slot;  /* of plain TCP 0 */
	u64 opened_us, updated_us;
	u64 bytes_acked, bytes_sent, bytes_received;
	u64 pace_Bps, word[FLOW_WORDS];
	u32 cwnd, ssthresh, srtt_us, in_flight;
	u32 mss, ca_state, retransmitted, subflows;
	u32 phase, pad;            /* 0xffffffff: the controller has none of its own */
	u64 state[64];
};
struct sum {                   /* mirrored in src/flows.rs */
	u64 flows, bytes_acked, bytes_sent, bytes_received, retransmitted;
};
_Static_assert(sizeof(struct row) == 672 && sizeof(struct row) <= sizeof(nothing), "row");
_Static_assert(sizeof(STATE) <= sizeof(((struct row *)0)->state), "state");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, u64);
	__type(value, struct row);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct address);
	__type(value, struct sum);
} sums SEC(".maps");

struct about {                 /* mirrored in src/loaded.rs; written by the loader, for those who find it pinned */
	u32 layout, pad;
	char controller[32], version[24];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct about);
} about SEC(".maps");

static __always_inline void address_of(struct sock *sk, struct address *a)
{
	const struct sock_common *c = &sk->__sk_common;
	a->family = c->skc_family;
	if (a->family == AF_INET) {
		*(u32 *)a->local = c->skc_rcv_saddr;
		*(u32 *)a->remote = c->skc_daddr;
	} else if (bpf_core_field_exists(c->skc_v6_daddr)) {
		for (int i = 0; i < 4; i++) {
			((u32 *)a->local)[i] = c->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			((u32 *)a->remote)[i] = c->skc_v6_daddr.in6_u.u6_addr32[i];
		}
	}
}
static __always_inline void fill(struct sock *sk, struct mem *m, struct row *r)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *f = &m->f;
	m->shown_us = f->now_us;
	r->updated_us = f->now_us;
	r->bytes_acked = f->una;
	r->bytes_sent = tp->bytes_sent;
	r->bytes_received = tp->bytes_received;
	r->retransmitted = tp->total_retrans;
	r->pace_Bps = f->pace_Bps;
	r->word[0] = f->word[0];
	r->word[1] = f->word[1];
	r->cwnd = f->cwnd;
	r->ssthresh = f->ssthresh;
	r->srtt_us = f->srtt_us;
	r->in_flight = f->in_flight;
	r->mss = f->mss;
	r->ca_state = f->state;
	r->subflows = f->group.n;
#ifdef CC_PHASE
	r->phase = m->s.CC_PHASE;
#else
	r->phase = 0xffffffff;
#endif
	__builtin_memcpy(r->state, &m->s, sizeof(m->s));
}
static __always_inline void enlist(struct sock *sk, struct mem *m)
{
	u64 id = __sync_fetch_and_add(&counts.opened, 1) + 1;
	struct row *r;
	m->id = id;
	r = entry(&flows, &id);
	if (!r) {
		count(&counts.unlisted, 1);
		return;
	}
	address_of(sk, &r->address);
	r->local_port = sk->__sk_common.skc_num;
	r->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	r->token = m->token;
	r->subflow = m->subflow;
	r->slot = m->slot;
	r->opened_us = m->f.now_us;
	fill(sk, m, r);
}
/* At the end of hooks that come with every ACK. */
static __always_inline void refresh(struct sock *sk, struct mem *m)
{
	u64 id = m->id;
	struct row *r;
	if (m->f.now_us - m->shown_us < LIST_US)
		return;
	r = bpf_map_lookup_elem(&flows, &id);
	if (r)
		fill(sk, m, r);
	else
		m->shown_us = m->f.now_us;
}
static __always_inline void delist(struct sock *sk, struct mem *m)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 id = m->id, sent = tp->bytes_sent, received = tp->bytes_received, acked = tp->bytes_acked;
	u32 resent = tp->total_retrans;
	struct address a = {};
	struct sum *sum;
	struct row *r = bpf_map_lookup_elem(&flows, &id);
	if (r) {
		a = r->address; /* a disconnected socket has lost it, and its counters */
		sent = flow_max64(sent, r->bytes_sent);
		received = flow_max64(received, r->bytes_received);
		resent = flow_max(resent, r->retransmitted);
		bpf_map_delete_elem(&flows, &id);
	} else {
		address_of(sk, &a);
	}
	acked = flow_max64(acked, m->f.una);
	count(&counts.closed, 1);
	count(&counts.bytes_acked, acked);
	count(&counts.bytes_sent, sent);
	count(&counts.bytes_received, received);
	sum = entry(&sums, &a);
	if (!sum)
		return;
	count(&sum->flows, 1);
	count(&sum->bytes_acked, acked);
	count(&sum->bytes_sent, sent);
	count(&sum->bytes_received, received);
	count(&sum->retransmitted, resent);
}
#endif
