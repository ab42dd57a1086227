/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* shim.bpf.h: makes the controller CC one of the kernel's. A controller's file defines CC, may define
 *   CC_UNCOUPLED   it never looks at the other subflows
 *   CC_DELAY       it reads the one-way delay
 *   CC_PHASE       the field of its state that user space is shown as its phase
 * and includes its header and this one. Hooks that come before `init` find no memory and pass: for the kernel tells a
 * client's controller of the ACK of its SYN. A socket without memory has the kernel's Reno. */
#ifndef SHIM_BPF_H
#define SHIM_BPF_H
#include "kernel.h"
#include <bpf/bpf_endian.h>
#include "controller.h"
#include "socket.h"
#include "group.h"
#include "list.h"
#include "record.h"

char _license[] SEC("license") = "GPL"; /* the kernel asks for it; the source is under the licences above */

_Static_assert((u32)CA_EVENT_TX_START == FLOW_TX_START && (u32)CA_EVENT_CWND_RESTART == FLOW_IDLE &&
	       (u32)CA_EVENT_COMPLETE_CWR == FLOW_RECOVERED && (u32)CA_EVENT_LOSS == FLOW_TIMEOUT, "events are passed as they are");

extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

SEC("struct_ops") void BPF_PROG(cc_init, struct sock *sk)
{
	struct mem *m = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!m) {
		count(&counts.unstored, 1);
		return;
	}
	if (m->id) { /* a socket that was connected before */
		if (m->live) {
			leave(m);
			delist(sk, m);
		}
		bpf_sk_storage_delete(&sockets, sk);
		m = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!m) {
			count(&counts.unstored, 1);
			return;
		}
	}
	m->live = 1;
	see(sk, m);
	identify(sk, m);
	join(m);
	enlist(sk, m);
	RECORDED(m, CALL_INIT, 0, 0, call_init(&m->f, &m->s));
	deliver(m);
	set_window(sk, &m->f);
	meet(m, 0);
}

#if HAS(FLOW_ACK | FLOW_SEND)
/* Controllers that measure; and those that lower the window for a burst, to restore it before TCP looks at it. */
SEC("struct_ops") void BPF_PROG(cc_ack, struct sock *sk, const struct ack_sample *sample)
{
	struct mem *m = get(sk);
	s32 rtt;
	if (!m)
		return;
	see(sk, m);
	rtt = sample->rtt_us; /* negative: no sample */
	m->a.acked = sample->pkts_acked;
	m->a.rtt_us = rtt > 0 ? rtt : 0;
	m->a.flags = 0;
#ifdef CC_DELAY
	one_way_delay(sk, m);
#endif
	RECORDED(m, CALL_ACK, 0, 0, call_ack(&m->f, &m->a, &m->s));
	refresh(sk, m);
}
#endif

SEC("struct_ops") void BPF_PROG(cc_grow, struct sock *sk, u32 ack, u32 acked)
{
	struct mem *m = get(sk);
	if (!m) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	see(sk, m);
	m->a.acked = acked;
	meet(m, 1);
	RECORDED(m, CALL_GROW, 0, 0, call_grow(&m->f, &m->a, &m->s));
	deliver(m);
	set_window(sk, &m->f);
	refresh(sk, m);
}

SEC("struct_ops") u32 BPF_PROG(cc_ssthresh, struct sock *sk)
{
	struct mem *m = get(sk);
	u32 result = 0;
	if (!m)
		return tcp_reno_ssthresh(sk);
#if HAS(FLOW_SEND)
	/* a timer found the window lowered: what TCP has noted for `undo` is not the window */
	m->prior = m->clamped && tcp_sk(sk)->snd_cwnd == m->clamped && tcp_sk(sk)->prior_cwnd == m->clamped ? m->window : 0;
#endif
	see(sk, m);
	meet(m, 0);
	RECORDED(m, CALL_SSTHRESH, 0, result, result = call_ssthresh(&m->f, &m->s));
	return result;
}

SEC("struct_ops") u32 BPF_PROG(cc_undo, struct sock *sk)
{
	struct mem *m = get(sk);
	u32 result = 0;
	if (!m)
		return tcp_reno_undo_cwnd(sk);
	see(sk, m);
	RECORDED(m, CALL_UNDO, 0, result, result = call_undo(&m->f, &m->s));
	return result;
}

SEC("struct_ops") void BPF_PROG(cc_event, struct sock *sk, enum tcp_ca_event event)
{
	struct mem *m;
	u32 lowered = 0;
	if (event > CA_EVENT_LOSS)
		return;
	if (event == CA_EVENT_TX_START && !HAS(FLOW_EVENT)) /* of a small window as often as an ACK, and nobody listens */
		return;
	m = get(sk);
	if (!m)
		return;
#if HAS(FLOW_SEND)
	if (event == CA_EVENT_TX_START) /* comes within a transmit opportunity: its bound stays */
		lowered = m->clamped;
#endif
	see(sk, m);
	if (event == CA_EVENT_CWND_RESTART)
		m->f.now_us = flow_max64(m->f.now_us, bpf_ktime_get_ns() / 1000);
	RECORDED(m, CALL_EVENT, event, 0, call_event(&m->f, event, &m->s));
	if (event == CA_EVENT_LOSS) /* TCP sets it after this call, and no other comes where the path is dead */
		m->f.cwnd = m->f.in_flight + 1;
	if (event == CA_EVENT_COMPLETE_CWR || event == CA_EVENT_LOSS)
		meet(m, 0);
	if (lowered && lowered < m->f.cwnd) {
		m->window = m->f.cwnd;
		m->clamped = lowered;
		tcp_sk(sk)->snd_cwnd = lowered;
	}
}

#if HAS(FLOW_SEND)
/* A timeout that is no new reduction has set the window itself, perhaps to what it was lowered to. */
SEC("struct_ops") void BPF_PROG(cc_state, struct sock *sk, u8 state)
{
	struct mem *m = get(sk);
	if (m && state == FLOW_LOSS)
		m->clamped = 0;
}

static __always_inline void unpace(struct sock *sk, struct mem *m)
{
	m->paced = 0;
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul) /* the application may ask too */
		sk->sk_pacing_status = SK_PACING_NONE;
}

SEC("struct_ops") u32 BPF_PROG(cc_send, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mem *m = get(sk);
	u64 rate;
	u32 burst, most;
	if (!m)
		return 2; /* what the kernel takes by default */
	see(sk, m);
	RECORDED(m, CALL_SEND, 0, 0, call_send(&m->f, &m->s));
	rate = m->f.pace_Bps;
	burst = m->f.burst;
	if (m->f.window && (m->f.state == FLOW_CWR || m->f.state == FLOW_RECOVERY)) { /* TCP makes its own anew at each ACK */
		m->f.cwnd = m->f.window;
		tp->snd_cwnd = m->f.window;
	}
	if (rate) { /* what counts is the value at the moment of sending; TCP sets its own after each ACK */
		if (sk->sk_pacing_status == SK_PACING_NONE) {
			sk->sk_pacing_status = SK_PACING_NEEDED;
			m->paced = 1;
		}
		sk->sk_pacing_rate = flow_min64(rate, sk->sk_max_pacing_rate);
	} else if (m->paced && tp->tcp_wstamp_ns <= tp->tcp_clock_cache) {
		/* TCP would go on to pace, with a timer for each packet. Not before the last gap is over: packets that leave
		 * within it are stamped with its end, and their RTT would be too short */
		unpace(sk, m);
	}
	if (!burst)
		return 2;
	most = m->f.in_flight + burst; /* the window is the only upper bound of an opportunity that we may set */
	if (most < m->f.cwnd) {
		m->window = m->f.cwnd;
		m->clamped = most;
		tp->snd_cwnd = most;
	}
	return burst;
}
#endif

SEC("struct_ops") void BPF_PROG(cc_release, struct sock *sk)
{
	struct mem *m = get(sk);
	if (!m)
		return;
#if HAS(FLOW_SEND)
	/* the flow may go on under another one */
	if (m->clamped && tcp_sk(sk)->snd_cwnd == m->clamped)
		tcp_sk(sk)->snd_cwnd = m->window;
	if (m->paced)
		unpace(sk, m);
#endif
	RECORDED(m, CALL_RELEASE, 0, 0, call_release(&m->f, &m->s));
	leave(m);
	delist(sk, m);
	m->live = 0;
}

SEC(".struct_ops.link") struct tcp_congestion_ops shim = {
	.init = (void *)cc_init,
#if HAS(FLOW_ACK | FLOW_SEND)
	.pkts_acked = (void *)cc_ack,
#endif
	.cong_avoid = (void *)cc_grow,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo,
	.cwnd_event = (void *)cc_event,
#if HAS(FLOW_SEND)
	.set_state = (void *)cc_state,
	.min_tso_segs = (void *)cc_send,
#endif
	.release = (void *)cc_release,
	.name = "pc_placeholder", /* replaced by the loader */
};
#endif
