/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* kernel.h: the little that our programs need of the kernel's types. The loader moves every access to where the
 * running kernel has the field (CO-RE), so only names and types count here. Bit-fields are read with
 * BPF_CORE_READ_BITFIELD only: a plain read of one takes the wrong bits without a word. */
#ifndef KERNEL_H
#define KERNEL_H
#include "flow.h"

typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
/* names that libbpf's headers expect */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_SK_STORAGE = 24, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_NOEXIST = 1 };
struct bpf_spin_lock {
	u32 val;
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { AF_INET = 2, AF_INET6 = 10 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};
struct sock_common {
	volatile unsigned char skc_state;
	u16 skc_family, skc_num;
	__be16 skc_dport;
	__be32 skc_daddr, skc_rcv_saddr;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr; /* absent from kernels without IPv6 */
};
struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u32 sk_pacing_status;
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
};
struct tcp_options_received {
	u32 rcv_tsval, rcv_tsecr;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_una, snd_nxt, mss_cache;
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd;
	u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	u32 delivered, lost, app_limited;
	u32 srtt_us, rttvar_us, data_segs_out, total_retrans, high_seq, undo_marker;
	u16 total_rto; /* absent from kernels before 6.7 */
	u64 tcp_mstamp, tcp_wstamp_ns, tcp_clock_cache, bytes_acked, bytes_sent, bytes_received;
	struct tcp_options_received rx_opt;
	u8 is_cwnd_limited : 1;
	u8 tcp_usec_ts : 1; /* absent from kernels before 6.7 */
	_Bool is_mptcp; /* absent from kernels without MPTCP */
};
struct mptcp_subflow_context { /* of kernels with MPTCP, in icsk_ulp_data of a subflow */
	void *conn;
	u32 token, subflow_id;
};
struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};
#pragma clang attribute pop

/* the loader matches its members by name; those left out stay 0 */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
};

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk) { return (struct tcp_sock *)sk; }
static __always_inline u32 tcp_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}
static __always_inline u32 tcp_ca_state(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}
#endif
