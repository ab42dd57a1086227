/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* socket.h: what the shim keeps of each socket, and the view of a flow that it makes from the kernel's fields. */
#ifndef SOCKET_H
#define SOCKET_H
#include "controller.h"
#include "kernel.h"

#define WINDOW_MAX (1u << 30) /* up to here the controllers' arithmetic is exact */

struct mem { /* too large for the stack, and the view must lie in memory of which the verifier tracks no ranges */
	struct flow f;
	struct flow_ack a;
	u64 id, key;                  /* of its row in `flows`; of its connection in `groups`, 0: a group of its own */
	u64 opened_us, shown_us;
	u64 tick_at_us;               /* when the peer's clock was first seen, 0: not yet */
	u32 tick_val, peer_tick_us;   /* what it showed; its unit, 0: not known yet */
	u32 live, token, subflow, slot;
	u32 window, clamped, prior;   /* the window before it was lowered for a burst; what it was lowered to, 0: nothing */
	u32 paced, shown;             /* TCP paces because of us; the slots that the flow was last shown, a bit each */
	STATE s;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mem);
} sockets SEC(".maps");

struct counts {        /* mirrored in src/flows.rs; since the controller was loaded */
	u64 opened, closed;                   /* flows */
	u64 unstored;                         /* flows without memory for a state: the kernel's Reno */
	u64 ungrouped;                        /* subflows that found the groups full: each a group of its own */
	u64 unlisted;                         /* flows that found the list full: they are counted, not shown */
	u64 bytes_acked, bytes_sent, bytes_received; /* of closed flows */
	u64 lost;                             /* of the test build: records that found the ring full */
} counts = {};

static __always_inline void count(u64 *what, u64 n) { __sync_fetch_and_add(what, n); }

/* What belongs to a socket whose `init` was called, else nothing. */
static __always_inline struct mem *get(struct sock *sk)
{
	struct mem *m = bpf_sk_storage_get(&sockets, sk, 0, 0);
	return m && m->live ? m : 0;
}

static __always_inline void see(struct sock *sk, struct mem *m)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *f = &m->f;
	u32 una = tp->snd_una, cwnd = tp->snd_cwnd, ssthresh = tp->snd_ssthresh;
	u64 now = tp->tcp_mstamp;
#if HAS(FLOW_SEND)
	if (m->clamped) { /* if TCP has not changed it, the window is what it was before it was lowered */
		if (cwnd == m->clamped) {
			cwnd = m->window;
			tp->snd_cwnd = cwnd;
		}
		m->clamped = 0;
	}
#endif
	f->cwnd = flow_min(cwnd, WINDOW_MAX);
	f->cwnd_cnt = tp->snd_cwnd_cnt;
	f->ssthresh = ssthresh < WINDOW_MAX ? ssthresh : FLOW_INFINITE;
	clear_post(f);
	f->mail = 0;
	f->now_us = flow_max64(now, f->now_us); /* the clock read at IDLE may be ahead of the socket's own */
	f->una = tp->bytes_acked;
	f->nxt = f->una + (u32)(tp->snd_nxt - una);
	f->mss = tp->mss_cache;
	f->in_flight = tcp_in_flight(tp);
	f->srtt_us = tp->srtt_us >> 3;
	f->rttvar_us = tp->rttvar_us >> 2;
	f->prior_cwnd = m->prior ? m->prior : tp->prior_cwnd;
	f->cwnd_max = flow_min(tp->snd_cwnd_clamp, WINDOW_MAX);
	f->state = tcp_ca_state(tp);
	f->flags = bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp ? FLOW_MULTIPATH : 0;
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) || (flow_slow(f) && f->cwnd < 2 * tp->max_packets_out))
		f->flags |= FLOW_LIMITED;
	if (tp->app_limited)
		f->flags |= FLOW_STARVED;
	f->delivered = tp->delivered;
	f->lost = tp->lost;
}

/* The window that the controller has set. */
static __always_inline void set_window(struct sock *sk, const struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ssthresh = tp->snd_ssthresh;
	if (tp->snd_cwnd != f->cwnd)
		tp->snd_cwnd = f->cwnd;
	if (tp->snd_cwnd_cnt != f->cwnd_cnt)
		tp->snd_cwnd_cnt = f->cwnd_cnt;
	if ((ssthresh < WINDOW_MAX ? ssthresh : FLOW_INFINITE) != f->ssthresh)
		tp->snd_ssthresh = f->ssthresh;
}

/* The delay to the receiver, from the timestamps: its clock when it sent the ACK less ours when the packet left. Only where
 * both count in microseconds: ours if the route says so; the peer's unit is told by how fast its clock runs. */
static __always_inline void one_way_delay(struct sock *sk, struct mem *m)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 val = tp->rx_opt.rcv_tsval, echo = tp->rx_opt.rcv_tsecr;
	u64 passed;
	if (!echo || !bpf_core_field_exists(tp->tcp_usec_ts) || !BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		return;
	if (!m->tick_at_us) {
		m->tick_at_us = m->f.now_us;
		m->tick_val = val;
	}
	if (!m->peer_tick_us) {
		passed = m->f.now_us - m->tick_at_us;
		if (passed < 100000)
			return;
		m->peer_tick_us = val - m->tick_val > passed / 10 ? 1 : 1000;
	}
	if (m->peer_tick_us != 1 || !m->a.rtt_us)
		return;
	/* the stamp that is echoed is of the oldest packet, which may have waited for the newest */
	m->a.owd_us = val - ((u32)tp->tcp_mstamp - m->a.rtt_us);
	m->a.flags = FLOW_ACK_OWD;
}
#endif
