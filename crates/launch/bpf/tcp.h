/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* tcp.h: the little that launch.bpf.c needs of the kernel's types. `struct bpf_sock_ops` is a stable interface: its
 * layout counts. The others are CO-RE: the loader moves every access to where the running kernel has the field. */
#ifndef TCP_H
#define TCP_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
/* names that libbpf's headers expect */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef int __s32;
typedef long long __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

enum { BPF_MAP_TYPE_HASH = 1 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1 };
enum { AF_INET = 2, IPPROTO_TCP = 6, TCP_CONGESTION = 13, SOL_SOCKET = 1, SO_MAX_PACING_RATE = 47 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_RTO_CB = 8,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_RTT_CB = 12,
};
enum {
	BPF_SOCK_OPS_RTO_CB_FLAG = 1 << 0,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
	BPF_SOCK_OPS_RTT_CB_FLAG = 1 << 3,
};
enum { SOCK_DONE = 1 };
enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_CLOSE = 7,
	TCP_LAST_ACK = 9,
	TCP_CLOSING = 11,
};

struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family, remote_ip4, local_ip4; /* addresses in network order */
	u32 remote_ip6[4], local_ip6[4];
	u32 remote_port, local_port;
	u32 is_fullsock, snd_cwnd, srtt_us, bpf_sock_ops_cb_flags;
	u32 unused[20];
	u64 bytes_received, bytes_acked;
	struct bpf_sock *sk __attribute__((aligned(8)));
};
_Static_assert(__builtin_offsetof(struct bpf_sock_ops, sk) == 184, "include/uapi/linux/bpf.h");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock_common {
	unsigned long skc_flags;
};
struct sock {
	struct sock_common __sk_common;
	unsigned long sk_max_pacing_rate;
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	void *icsk_ulp_data;
	u32 icsk_user_timeout;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 write_seq, snd_una;
	u64 bytes_acked, bytes_received, bytes_sent, bytes_retrans;
	_Bool is_mptcp; /* absent from kernels without MPTCP */
};
struct mptcp_subflow_context {
	u32 request_join : 1, mp_capable : 1, mp_join : 1;
	struct sock *conn; /* the connection, a mptcp_sock */
};
struct mptcp_sock {
	u64 snd_una, write_seq;
};
struct bpf_iter__tcp { /* what an iterator over the TCP sockets of a network namespace is called with */
	struct sock_common *sk_common;
};
#pragma clang attribute pop
#endif
