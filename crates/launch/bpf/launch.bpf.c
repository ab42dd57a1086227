/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* launch: attached to the cgroup of a run. It puts every TCP connection of that cgroup, subflows of Multipath TCP
 * included, under the congestion controller asked for, and counts what they send and receive.
 *
 * A live connection has an entry in `flows`. When it closes, its counts are added to those of its path in `paths` and
 * the entry goes, so that the maps do not grow with the number of connections. */
#include "tcp.h"

char _license[] SEC("license") = "GPL"; /* the kernel asks for it; the source is under the licences above */

enum { NAME = 16 }; /* TCP_CA_NAME_MAX */
/* TCP_USER_TIMEOUT of a connection that only asks whether a host is there [ms]; see race.rs */
enum { ASKS = 0x61736b73 };

/* What connections are told: those that are established at once, the others when their `number` is another one. */
struct orders {
	char control[NAME]; /* empty: connections keep theirs */
	u32 pace;	    /* at most so much of each connection, or subflow [byte/s]; all ones: no bound */
	u32 number;	    /* of these orders */
};
_Static_assert(sizeof(struct orders) == 24, "see orders.rs");
struct orders orders SEC(".data.orders") = {};

/* What connections have in common that are counted together. Mirrored in src/counters.rs, as are all structs here. */
struct path {
	u32 local[4], remote[4]; /* IPv6, or IPv4 as ::ffff:a.b.c.d */
	u32 mptcp;
	char control[NAME]; /* the controller that the kernel said was in force, when last asked, or that it will have */
};
struct use { /* in bytes, but for the first two and the last */
	u64 flows, joins;
	u64 acked, received, sent, resent;
	u64 timeouts; /* of retransmission (RFC 6298) */
};
struct flow {
	struct path path;
	u32 state;
	u64 acked_before; /* at the handshake's end: the SYN counts as a byte */
	u64 pending;	  /* written, not yet acknowledged; of Multipath TCP, by the whole connection */
	struct use use;
	u32 number; /* of the orders that it has */
	u32 ports;  /* local, remote */
	u32 bound;  /* of its pace by these orders, as there */
	u32 own;    /* the program's own */
};
_Static_assert(sizeof(struct path) == 52 && sizeof(struct use) == 56 && sizeof(struct flow) == 144, "see counters.rs");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, u64); /* the socket's cookie */
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 14);
	__type(key, struct path);
	__type(value, struct use);
} paths SEC(".maps");

/* `uncontrolled`: established under another controller than asked for; `uncounted`: a map was full */
struct { u64 uncontrolled, uncounted; } faults = {};

static __always_inline void take_control(struct bpf_sock_ops *ops)
{
	if (orders.control[0])
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, orders.control, NAME);
}

/* A controller of pathcast's comes when the connection stands: the kernel, which gives the first window then, calls `init` for
 * one that comes before at once, and never again. Another may have to say in the SYN that it needs ECN. */
static __always_inline _Bool comes_later(void)
{
	return orders.control[0] == 'p' && orders.control[1] == 'c' && orders.control[2] == '_';
}

/* The lesser of the bound and of what the program has set itself, which comes back with the bound's end. Nothing is said
 * while the bound is as it was. */
static __always_inline void take_pace(struct bpf_sock_ops *ops, struct tcp_sock *tp, struct flow *f)
{
	unsigned long now = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;
	u32 is = now < ~0u ? now : ~0u, bound = orders.pace, pace;

	if (bound == f->bound)
		return;
	if (is != (f->own < f->bound ? f->own : f->bound)) /* the program has set it */
		f->own = is;
	f->bound = bound;
	pace = f->own < bound ? f->own : bound;
	if (pace != is)
		bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof(pace));
}

static __always_inline _Bool same_name(const char *a, const char *b)
{
	for (int i = 0; i < NAME; i++) {
		if (a[i] != b[i])
			return 0;
		if (!a[i])
			break;
	}
	return 1;
}

/* A field of the context: the verifier wants a plain offset, which a compiler that joins branches would spoil. */
#define FIELD(ops, name) (*(volatile u32 *)&(ops)->name)

static __always_inline void addresses(struct bpf_sock_ops *ops, struct path *p)
{
	u32 local = FIELD(ops, local_ip4), remote = FIELD(ops, remote_ip4);

	p->local[0] = FIELD(ops, local_ip6[0]), p->remote[0] = FIELD(ops, remote_ip6[0]);
	p->local[1] = FIELD(ops, local_ip6[1]), p->remote[1] = FIELD(ops, remote_ip6[1]);
	p->local[2] = FIELD(ops, local_ip6[2]), p->remote[2] = FIELD(ops, remote_ip6[2]);
	p->local[3] = FIELD(ops, local_ip6[3]), p->remote[3] = FIELD(ops, remote_ip6[3]);
	if (ops->family != AF_INET)
		return;
	p->local[0] = p->local[1] = p->remote[0] = p->remote[1] = 0;
	p->local[2] = p->remote[2] = bpf_htonl(0xffff);
	p->local[3] = local;
	p->remote[3] = remote;
}

static __always_inline void sample(struct flow *f, struct tcp_sock *tp)
{
	f->use.acked = tp->bytes_acked - f->acked_before;
	/* their FIN counts as a byte; SOCK_DONE says that it has come */
	f->use.received = tp->bytes_received - (tp->inet_conn.icsk_inet.sk.__sk_common.skc_flags >> SOCK_DONE & 1);
	f->use.sent = tp->bytes_sent;
	f->use.resent = tp->bytes_retrans;
	f->pending = (u32)(tp->write_seq - tp->snd_una);
	if (f->path.mptcp) { /* a subflow is given only what there is room for at the far end */
		struct mptcp_subflow_context *subflow = tp->inet_conn.icsk_ulp_data;
		struct mptcp_sock *connection = (struct mptcp_sock *)BPF_CORE_READ(subflow, conn);

		if (connection) {
			u64 above = BPF_CORE_READ(connection, write_seq) - BPF_CORE_READ(connection, snd_una);

			f->pending = above > f->pending ? above : f->pending;
		}
	}
}

/* A connection that `race.rs` asks with: none of the program's. */
static __always_inline _Bool asks(struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_user_timeout == ASKS;
}

static __always_inline void follow(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_RTT_CB_FLAG |
						  BPF_SOCK_OPS_RTO_CB_FLAG);
}

/* The first SYN of a connection is about to leave: if none is answered, its timeouts are all that tells. A further subflow
 * is not what the program waits for. */
static __always_inline void begun(struct bpf_sock_ops *ops, struct tcp_sock *tp)
{
	struct flow f = {};
	u64 cookie = bpf_get_socket_cookie(ops);

	if (asks(tp))
		return;
	if (bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp) {
		struct mptcp_subflow_context *subflow = tp->inet_conn.icsk_ulp_data;

		if (BPF_CORE_READ_BITFIELD_PROBED(subflow, request_join))
			return;
	}
	if (comes_later())
		__builtin_memcpy(f.path.control, orders.control, NAME);
	else
		bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, f.path.control, NAME);
	addresses(ops, &f.path);
	f.ports = FIELD(ops, local_port) << 16 | bpf_ntohl(FIELD(ops, remote_port));
	f.state = TCP_SYN_SENT;
	if (!bpf_map_update_elem(&flows, &cookie, &f, BPF_ANY))
		follow(ops);
}

static __always_inline void established(struct bpf_sock_ops *ops, struct tcp_sock *tp)
{
	struct flow f = {}, *before;
	u64 cookie = bpf_get_socket_cookie(ops);

	if (asks(tp))
		return;
	before = bpf_map_lookup_elem(&flows, &cookie);
	if (before)
		f.use.timeouts = before->use.timeouts;

	take_control(ops); /* perhaps again: Multipath TCP may have given a subflow its connection's controller */
	bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, f.path.control, NAME);
	f.bound = f.own = ~0u;
	take_pace(ops, tp, &f);
	if (orders.control[0] && !same_name(f.path.control, orders.control))
		__sync_fetch_and_add(&faults.uncontrolled, 1);
	addresses(ops, &f.path);
	if (bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp) {
		struct mptcp_subflow_context *subflow = tp->inet_conn.icsk_ulp_data;
		_Bool join = BPF_CORE_READ_BITFIELD_PROBED(subflow, mp_join);
		/* neither bit: the other end does not speak Multipath TCP */
		f.path.mptcp = join || BPF_CORE_READ_BITFIELD_PROBED(subflow, mp_capable);
		f.use.joins = join;
	}
	f.use.flows = 1;
	f.number = orders.number;
	f.ports = FIELD(ops, local_port) << 16 | bpf_ntohl(FIELD(ops, remote_port));
	f.state = TCP_ESTABLISHED;
	f.acked_before = tp->bytes_acked;
	if (bpf_map_update_elem(&flows, &cookie, &f, BPF_ANY)) {
		__sync_fetch_and_add(&faults.uncounted, 1);
		return;
	}
	follow(ops);
}

static __always_inline void fold(const struct flow *f)
{
	struct use none = {}, *sum;
	struct path key = f->path;

	bpf_map_update_elem(&paths, &key, &none, BPF_NOEXIST);
	sum = bpf_map_lookup_elem(&paths, &key);
	if (!sum) {
		__sync_fetch_and_add(&faults.uncounted, 1);
		return;
	}
	__sync_fetch_and_add(&sum->flows, f->use.flows);
	__sync_fetch_and_add(&sum->joins, f->use.joins);
	__sync_fetch_and_add(&sum->acked, f->use.acked);
	__sync_fetch_and_add(&sum->received, f->use.received);
	__sync_fetch_and_add(&sum->sent, f->use.sent);
	__sync_fetch_and_add(&sum->resent, f->use.resent);
	__sync_fetch_and_add(&sum->timeouts, f->use.timeouts);
}

static __always_inline void changed(struct bpf_sock_ops *ops, struct tcp_sock *tp, u32 old, u32 new)
{
	u64 cookie = bpf_get_socket_cookie(ops);
	struct flow *f = bpf_map_lookup_elem(&flows, &cookie);

	if (!f)
		return;
	if (f->state == TCP_SYN_SENT) { /* what is established gets another entry in a moment */
		if (new == TCP_CLOSE) {
			f->state = new; /* whoever reads it from now on knows that it may be in both */
			if (f->use.timeouts)
				fold(f);
			bpf_map_delete_elem(&flows, &cookie);
		}
		return;
	}
	sample(f, tp);
	/* our FIN counts as a byte once it is acknowledged */
	if ((old == TCP_FIN_WAIT1 && new == TCP_FIN_WAIT2) || (new == TCP_CLOSE && (old == TCP_CLOSING || old == TCP_LAST_ACK)))
		f->acked_before++;
	f->state = new;
	bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, f->path.control, NAME); /* the program may have chosen another */
	if (new == TCP_CLOSE) {
		f->use.acked = tp->bytes_acked - f->acked_before;
		fold(f);
		bpf_map_delete_elem(&flows, &cookie);
	}
}

SEC("sockops")
int launch(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp;

	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (!comes_later())
			take_control(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_STATE_CB:
	case BPF_SOCK_OPS_RTT_CB:
	case BPF_SOCK_OPS_RTO_CB:
		break;
	default:
		return 1;
	}
	tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!tp)
		return 1;
	if (ops->op == BPF_SOCK_OPS_RTT_CB) {
		u64 cookie = bpf_get_socket_cookie(ops);
		struct flow *f = bpf_map_lookup_elem(&flows, &cookie);

		if (f) {
			u32 number = orders.number;

			sample(f, tp);
			if (f->number != number) {
				f->number = number; /* before they are read: those that come meanwhile have another one */
				take_control(ops);
				take_pace(ops, tp, f);
				bpf_getsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, f->path.control, NAME);
			}
		}
	} else if (ops->op == BPF_SOCK_OPS_RTO_CB) {
		u64 cookie = bpf_get_socket_cookie(ops);
		struct flow *f = bpf_map_lookup_elem(&flows, &cookie);

		if (f) { /* no ACK comes that would tell */
			if (f->state != TCP_SYN_SENT)
				sample(f, tp);
			f->use.timeouts++;
		}
	} else if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB) {
		begun(ops, tp);
	} else if (ops->op == BPF_SOCK_OPS_STATE_CB) {
		changed(ops, tp, ops->args[0], ops->args[1]);
	} else {
		established(ops, tp);
	}
	return 1;
}

/* Reading it brings every live connection's counts up to now, its socket locked: the callbacks above tell of a sender's
 * ACKs alone, so that what comes in, and what is acknowledged without a sample of the RTT, would be seen only at its end. */
SEC("iter/tcp")
int look(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : 0;
	struct flow *f;
	u64 cookie;

	if (!tp)
		return 0;
	cookie = bpf_get_socket_cookie(tp);
	f = bpf_map_lookup_elem(&flows, &cookie);
	if (f && f->state != TCP_SYN_SENT)
		sample(f, tp);
	return 0;
}
