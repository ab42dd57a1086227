/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* hook_log: a controller that writes down every call of its hooks and otherwise does what flow.h does by default. It
 * pins the order of calls that flow.h promises to controllers. The view in a record is that on entry to the hook. */
#include "kernel.h"

char _license[] SEC("license") = "GPL"; /* the kernel asks for it; the source is under the licences above */

enum { HOOK_INIT, HOOK_ACK, HOOK_GROW, HOOK_SSTHRESH, HOOK_UNDO, HOOK_EVENT, HOOK_STATE, HOOK_SEND, HOOK_RELEASE };

struct record { /* mirrored in src/record.rs */
	u64 time_ns, stamp_us;
	u32 socket, hook, arg, result;
	u32 cwnd, ssthresh, prior_cwnd, una;
	u32 nxt, in_flight, packets_out, state;
	u32 srtt_us, acked, rtt_us, sent;
	u32 resent, high_seq, undo_marker, tcp_state;
	u32 timeouts, pad;
};
_Static_assert(sizeof(struct record) == 104, "src/record.rs reads 104 bytes");

struct mem { /* of one socket: the view that flow.h computes on, too large for the stack */
	struct flow f;
	struct flow_ack a;
	u32 id, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mem);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} records SEC(".maps");

struct { u32 sockets, lost; } counts = {}; /* sockets seen; records that found the ring full */

/* Sockets are numbered when first seen: addresses are used again. */
static __always_inline struct mem *mem_of(struct sock *sk)
{
	struct mem *m = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (m && !m->id)
		m->id = __sync_fetch_and_add(&counts.sockets, 1) + 1;
	return m;
}

static __always_inline void see(struct sock *sk, struct flow *f)
{
	struct tcp_sock *tp = tcp_sk(sk);
	f->cwnd = tp->snd_cwnd;
	f->cwnd_cnt = tp->snd_cwnd_cnt;
	f->ssthresh = tp->snd_ssthresh;
	f->prior_cwnd = tp->prior_cwnd;
	f->cwnd_max = tp->snd_cwnd_clamp;
	f->flags = 0;
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) || (flow_slow(f) && f->cwnd < 2 * tp->max_packets_out))
		f->flags = FLOW_LIMITED;
}

static __always_inline void note(struct sock *sk, u32 hook, u32 arg, u32 result, u32 acked, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mem *m = mem_of(sk);
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&counts.lost, 1);
		return;
	}
	r->time_ns = bpf_ktime_get_ns();
	r->stamp_us = tp->tcp_mstamp;
	r->socket = m ? m->id : 0;
	r->hook = hook;
	r->arg = arg;
	r->result = result;
	r->cwnd = tp->snd_cwnd;
	r->ssthresh = tp->snd_ssthresh;
	r->prior_cwnd = tp->prior_cwnd;
	r->una = tp->snd_una;
	r->nxt = tp->snd_nxt;
	r->in_flight = tcp_in_flight(tp);
	r->packets_out = tp->packets_out;
	r->state = tcp_ca_state(tp);
	r->srtt_us = tp->srtt_us >> 3;
	r->acked = acked;
	r->rtt_us = rtt_us;
	r->sent = tp->data_segs_out;
	r->resent = tp->total_retrans;
	r->high_seq = tp->high_seq;
	r->undo_marker = tp->undo_marker;
	r->tcp_state = sk->__sk_common.skc_state;
	r->timeouts = bpf_core_field_exists(tp->total_rto) ? tp->total_rto : 0;
	r->pad = 0;
	bpf_ringbuf_submit(r, 0);
}

SEC("struct_ops") void BPF_PROG(log_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 mptcp = bpf_core_field_exists(tp->is_mptcp) ? tp->is_mptcp : 0;
	note(sk, HOOK_INIT, mptcp, 0, 0, 0);
}

SEC("struct_ops") void BPF_PROG(log_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	s32 rtt = sample->rtt_us; /* negative: no sample */
	note(sk, HOOK_ACK, 0, 0, sample->pkts_acked, rtt > 0 ? rtt : 0);
}

SEC("struct_ops") void BPF_PROG(log_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mem *m = mem_of(sk);
	if (!m) {
		note(sk, HOOK_GROW, ack, tp->snd_cwnd, acked, 0);
		return;
	}
	see(sk, &m->f);
	m->a.acked = acked;
	flow_reno_grow(&m->f, &m->a);
	note(sk, HOOK_GROW, ack, m->f.cwnd, acked, 0);
	tp->snd_cwnd = m->f.cwnd;
	tp->snd_cwnd_cnt = m->f.cwnd_cnt;
}

SEC("struct_ops") u32 BPF_PROG(log_ssthresh, struct sock *sk)
{
	struct mem *m = mem_of(sk);
	u32 result = 2;
	if (m) {
		see(sk, &m->f);
		result = flow_half(&m->f);
	}
	note(sk, HOOK_SSTHRESH, 0, result, 0, 0);
	return result;
}

SEC("struct_ops") u32 BPF_PROG(log_undo_cwnd, struct sock *sk)
{
	struct mem *m = mem_of(sk);
	u32 result = tcp_sk(sk)->snd_cwnd;
	if (m) {
		see(sk, &m->f);
		result = flow_undo(&m->f);
	}
	note(sk, HOOK_UNDO, 0, result, 0, 0);
	return result;
}

SEC("struct_ops") void BPF_PROG(log_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	note(sk, HOOK_EVENT, event, 0, 0, 0);
}

SEC("struct_ops") void BPF_PROG(log_set_state, struct sock *sk, u8 state)
{
	note(sk, HOOK_STATE, state, 0, 0, 0);
}

SEC("struct_ops") u32 BPF_PROG(log_min_tso_segs, struct sock *sk)
{
	note(sk, HOOK_SEND, 0, 2, 0, 0);
	return 2; /* what the kernel takes by default */
}

SEC("struct_ops") void BPF_PROG(log_release, struct sock *sk)
{
	note(sk, HOOK_RELEASE, 0, 0, 0, 0);
}

SEC(".struct_ops.link") struct tcp_congestion_ops hook_log = {
	.init = (void *)log_init,
	.pkts_acked = (void *)log_pkts_acked,
	.cong_avoid = (void *)log_cong_avoid,
	.ssthresh = (void *)log_ssthresh,
	.undo_cwnd = (void *)log_undo_cwnd,
	.cwnd_event = (void *)log_cwnd_event,
	.set_state = (void *)log_set_state,
	.min_tso_segs = (void *)log_min_tso_segs,
	.release = (void *)log_release,
	.name = "pc_hook_log", /* replaced by the loader */
};
