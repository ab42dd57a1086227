/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* flow.h: what a congestion controller sees of its flow and of its connection's other subflows, and what it may set.
 *
 * One controller is one header beside this one. The same text is compiled natively into the simulator and with
 * `clang -target bpf` into the kernel. Units: windows in packets of one MSS, time in microseconds, rates in bytes per
 * second, positions in bytes.
 *
 * A controller NAME defines NAME_hooks (bits), NAME_PARAMS(P), NAME_KERNEL, NAME_PAPER, NAME_BASIS, struct NAME_params,
 * struct NAME_state, and one function for each bit:
 *
 *   void NAME_init    (flow, state, params)        established, first window given; state is zeroed before
 *   void NAME_ack     (flow, ack, state, params)   every ACK while data is outstanding; measures only
 *   void NAME_grow    (flow, ack, state, params)   the ACK acked data and no reduction (CWR, Recovery) is in progress
 *   u32  NAME_ssthresh(flow, state, params)        a reduction begins: loss, ECN, timeout (before FLOW_TIMEOUT)
 *   u32  NAME_undo    (flow, state, params)        the reduction was spurious; the new window
 *   void NAME_event   (flow, event, state, params)
 *   void NAME_send    (flow, state, params)        before each transmit opportunity, retransmissions included (but for
 *                                                  the single packet that a timeout or a probe of the tail repeats)
 *   void NAME_release (flow, state, params)        the last call
 *
 * A header of one's own may lie anywhere: PATHCAST_CONTROLLERS=FILE.h[:FILE.h...] at build time brings it into the simulator
 * and into the kernel (examples/own_controller). For the kernel it may define, since it has no file in crates/kernel/bpf:
 * NAME_UNCOUPLED, it never looks at the other subflows; NAME_DELAY, it reads owd_us; NAME_PHASE, the field of its state
 * that user space is shown as its phase.
 *
 * Order, as Linux was seen to have it (docs/kernel-hooks.md). Nothing comes before init: drivers keep to themselves that
 * the kernel reports the ACK of a client's SYN. One ACK: ack; if it changes a reduction, ssthresh, undo or RECOVERED; grow;
 * send. Timers and a full device queue begin reductions too, without an ack. A timeout within CWR, within Recovery, or
 * repeated before new data was acked brings neither ssthresh nor TIMEOUT: cwnd and state show it at the next call. With
 * undo, ssthresh goes back to what it was or to 3/4 of the window of then, whichever is larger.
 *
 * cwnd, cwnd_cnt and ssthresh may be set in init and grow only; drivers undo it elsewhere. In CWR and Recovery, without grow,
 * TCP reduces the window to ssthresh packet by packet (PRR); a controller that knows better sets `window` in send. Time passes only where a hook
 * is called; `send` may be called many times without a packet leaving: compare `nxt`, never count calls.
 *
 * Who counts packets takes them from `nxt`, `una` and `in_flight`. Each timeout and each probe of the tail repeats one packet
 * without `send`. And a kernel may leave out every hook of a timer, TIMEOUT and state among them (seen on a hardened Linux
 * 6.18, for one timeout in some 250): the next call finds state, cwnd and what is out changed, and ssthresh at any value.
 *
 * Rules: unsigned integers only, no division that could be by 0 (flow_div), shift counts masked, loops with constant
 * bounds, no globals, no tables, states without padding (u64 members first), every function inlined. Products of u64 name
 * their bound. Drivers keep cwnd, ssthresh (but for FLOW_INFINITE) and cwnd_max below 2^30. */
#ifndef FLOW_H
#define FLOW_H

#ifdef __BPF__ /* the BPF world has no C library; these are the kernel's own names */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
#endif
#define FLOW_FN static inline __attribute__((always_inline, unused))

#ifndef FLOW_PEERS
#define FLOW_PEERS 16 /* slots of a connection, a power of 2; one subflow more runs as a group of its own */
#endif
#define FLOW_WORDS 2             /* 64-bit words that a controller publishes to its siblings */
#define FLOW_INFINITE 0x7fffffffu /* ssthresh before the first loss */
#define FLOW_NOBODY 0xffffffffu

/* Hooks a controller defines, as bits of NAME_hooks. Those it leaves out get the default named here. */
#define FLOW_INIT 0x01     /* nothing */
#define FLOW_ACK 0x02      /* nothing */
#define FLOW_GROW 0x04     /* flow_reno_grow */
#define FLOW_SSTHRESH 0x08 /* flow_half */
#define FLOW_EVENT 0x10    /* nothing */
#define FLOW_SEND 0x20     /* TCP's own sizes and pacing */
#define FLOW_UNDO 0x40     /* flow_undo */
#define FLOW_RELEASE 0x80  /* nothing */

enum flow_state { FLOW_OPEN, FLOW_DISORDER, FLOW_CWR, FLOW_RECOVERY, FLOW_LOSS };
enum flow_event {
	FLOW_TX_START,  /* a packet leaves and nothing is in flight; also a repeated one, if all that is out is lost */
	FLOW_IDLE,      /* idle for longer than the RTO; TCP lowers cwnd after this call; then TX_START */
	FLOW_RECOVERED, /* CWR or Recovery over, cwnd == ssthresh; not after Loss; after Recovery state is Open already */
	FLOW_TIMEOUT,   /* RTO: ssthresh is set, TCP sets cwnd to in_flight + 1 after this call */
};
enum {
	FLOW_LIMITED = 1,   /* flow.flags: the window, not the application, held the flow back */
	FLOW_MULTIPATH = 2, /* the flow is a subflow of an MPTCP connection */
	FLOW_STARVED = 4,   /* of what is in flight some left when the application had nothing more to send (tp->app_limited) */
};
enum { FLOW_ACK_OWD = 1 }; /* flow_ack.flags: owd_us is valid */

struct flow_peer {    /* one subflow as its siblings last heard of it */
	u32 used, id; /* id: order of establishment within the connection, from 1 */
	u32 cwnd, ssthresh;
	u32 srtt_us, in_flight;
	u32 mail, pad; /* packets that siblings asked it to give up and that it has not yet seen */
	u64 word[FLOW_WORDS]; /* meaning is the controller's */
};
struct flow_group {
	u32 n, joins; /* live subflows, this one included; how many ever joined */
	struct flow_peer peer[FLOW_PEERS];
};

struct flow {
	/* may be set, where the hook says so */
	u32 cwnd;             /* packets, >= 1; below one packet: cwnd 1 and pace_Bps */
	u32 cwnd_cnt;         /* packets acked towards the next increase */
	u32 ssthresh;         /* packets */
	u32 burst;            /* packets a transmit opportunity may send at once; 0: TCP decides */
	u64 pace_Bps;         /* 0: TCP decides */
	u64 word[FLOW_WORDS]; /* published to the siblings after the call */
	u32 post_to, post;    /* ask peer[post_to] to give up `post` packets; FLOW_NOBODY: none */
	/* may only be read */
	u64 now_us;             /* monotonic; drivers read a clock at IDLE, where the socket's own stands still */
	u64 una, nxt;           /* first byte not acked, next byte to send; do not wrap, origin arbitrary */
	u32 mss, in_flight;
	u32 srtt_us, rttvar_us; /* RFC 6298 with the gains applied per sample; 0 before the first */
	u32 prior_cwnd;         /* cwnd when the current or last reduction began */
	u32 state, flags;
	u32 self;               /* own slot in group.peer */
	u32 mail;               /* packets that siblings ask this flow to give up; told once, in grow */
	u32 cwnd_max;           /* bound on cwnd set by the application (TCP_WINDOW_CLAMP and the like) */
	u64 forget;             /* used by flow_forget */
	struct flow_group group;
	u32 delivered, lost;    /* packets, since the start and modulo 2^32: acked in any order; marked as lost, again if again */
	u32 window, pad;        /* set in send: packets that may be in flight in CWR and Recovery; 0: TCP decides */
};
struct flow_ack {
	u32 acked;  /* ack: packets newly acked cumulatively; grow: packets newly delivered */
	u32 rtt_us; /* of the newest packet acked or SACKed; 0: none (only retransmitted ones) */
	u32 owd_us; /* to the receiver, unknown constant offset, modulo 2^32: use differences */
	u32 flags;
};

/* ---- arithmetic that both worlds share ---- */
FLOW_FN u32 flow_min(u32 a, u32 b) { return a < b ? a : b; }
FLOW_FN u32 flow_max(u32 a, u32 b) { return a > b ? a : b; }
FLOW_FN u64 flow_min64(u64 a, u64 b) { return a < b ? a : b; }
FLOW_FN u64 flow_max64(u64 a, u64 b) { return a > b ? a : b; }
FLOW_FN u64 flow_div(u64 a, u64 b) { return b ? a / b : 0; } /* BPF gives 0 for x/0, a CPU traps */

/* The same value, of which the kernel's verifier no longer knows the range. Wrap what one turn of a loop hands to the
 * next: otherwise the verifier follows every combination of branches through all turns and gives up at a million
 * instructions. */
FLOW_FN u64 flow_forget(struct flow *f, u64 x)
{
#ifdef __BPF__
	*(volatile u64 *)&f->forget = x;
	__asm__ volatile("" ::: "memory"); /* nor the ranges of what was read of the view before */
	return *(volatile u64 *)&f->forget;
#else
	(void)f;
	return x;
#endif
}
FLOW_FN int flow_limited(const struct flow *f) { return (f->flags & FLOW_LIMITED) != 0; }
FLOW_FN int flow_slow(const struct flow *f) { return f->cwnd < f->ssthresh; }

/* ssthresh of a new connection: `bytes` in packets, at least 2; 0 bytes: as TCP set it. */
FLOW_FN void flow_start(struct flow *f, u32 bytes)
{
	if (bytes && f->mss)
		f->ssthresh = flow_max((u32)flow_div(bytes, f->mss), 2);
}
/* Slow start: one packet for each acked, not beyond ssthresh. Returns what is left for congestion avoidance. */
FLOW_FN u32 flow_slow_start(struct flow *f, u32 acked)
{
	u32 to = flow_min(f->cwnd + acked, f->ssthresh);
	acked -= to - f->cwnd;
	f->cwnd = flow_min(to, f->cwnd_max);
	return acked;
}
/* One packet for every `per` acked: the kernel's tcp_cong_avoid_ai. */
FLOW_FN void flow_add(struct flow *f, u32 per, u32 acked)
{
	if (!per)
		per = 1;
	if (f->cwnd_cnt >= per) {
		f->cwnd_cnt = 0;
		f->cwnd++;
	}
	f->cwnd_cnt += acked;
	if (f->cwnd_cnt >= per) {
		u32 delta = f->cwnd_cnt / per;
		f->cwnd_cnt -= delta * per;
		f->cwnd += delta;
	}
	f->cwnd = flow_min(f->cwnd, f->cwnd_max);
}
FLOW_FN void flow_reno_grow(struct flow *f, const struct flow_ack *a)
{
	u32 acked = a->acked;
	if (!flow_limited(f))
		return;
	if (flow_slow(f)) {
		acked = flow_slow_start(f, acked);
		if (!acked)
			return;
	}
	flow_add(f, f->cwnd, acked);
}
FLOW_FN u32 flow_half(const struct flow *f) { return flow_max(f->cwnd >> 1, 2); }
FLOW_FN u32 flow_undo(const struct flow *f) { return flow_max(f->cwnd, f->prior_cwnd); }

/* A sibling as of its last report, oneself as of now. */
FLOW_FN u32 flow_peer_cwnd(const struct flow *f, u32 i) { return i == f->self ? f->cwnd : f->group.peer[i].cwnd; }
FLOW_FN u32 flow_peer_srtt(const struct flow *f, u32 i) { return i == f->self ? f->srtt_us : f->group.peer[i].srtt_us; }

/* own RTT / RTT of peer i, in 1/4096, at most 2^20 (256 times); 0: no such peer, or one RTT is not known.
 * Ratios to the own RTT make the coupled formulas free of units and of large powers. */
FLOW_FN u64 flow_peer_ratio(const struct flow *f, u32 i)
{
	u64 rtt = flow_peer_srtt(f, i);
	if (!f->group.peer[i].used || !rtt)
		return 0;
	return flow_min64(((u64)f->srtt_us << 12) / rtt, 1u << 20);
}

/* ---- parameters: every one a u32, described once: P(name, default, least, most, text, source) ---- */
#define FLOW_PARAM_FIELD(name, def, lo, hi, text, source) u32 name;
#define FLOW_PARAM_ROW(name, def, lo, hi, text, source) { #name, def, lo, hi, text, source },
#define FLOW_PARAM_DEFAULT(name, def, lo, hi, text, source) def,
#define FLOW_START_PARAM(P) \
	P(initial_ssthresh_bytes, 0, 0, 0x7fffffff, "ssthresh of a new connection [byte]; 0: as TCP sets it (no limit)", \
	  "RFC 5681 section 3.1: arbitrarily high")
#endif
