//! The order of hooks that `flow.h` promises, as rules over the records of one socket at a time. Pure.
//!
//! A kernel may leave out all hooks of a timer (docs/kernel-hooks.md). Where its own state and counters show between two
//! records that it did, no rule is judged across that gap; but such gaps must be few.

use std::collections::BTreeMap;

use pathcast_kernel::{CaEvent, CaState, Hook, Record};

const SYN_SENT: u32 = 2;
const SYN_RECEIVED: u32 = 3;
const INFINITE: u32 = 0x7fff_ffff;

/// The timers of which no hook told, in a whole log.
pub const UNTOLD: &str = "timers of which no hook told";
/// At least so many timeouts are told for each of them; measured: some 250.
const TOLD_FOR_ONE: u64 = 4;
const SINGLE: &str = "packets without send are single repeated ones";

/// What was seen, and what broke a rule.
#[derive(Default)]
pub struct Order {
    /// How often each kind of thing was seen.
    pub seen: BTreeMap<String, u64>,
    /// Broken rules, with the records around them.
    pub broken: Vec<String>,
}

impl Order {
    /// Of a whole log.
    pub fn of(records: &[Record]) -> Order {
        let mut order = Order::default();
        let mut sockets: BTreeMap<u32, Vec<Record>> = BTreeMap::new();
        for record in records {
            sockets.entry(record.socket).or_default().push(*record);
        }
        order.count("sockets", sockets.len() as u64);
        for log in sockets.values() {
            order.socket(log);
        }
        let (untold, told) = (order.times(UNTOLD), order.times("Loss: cwnd = in flight + 1"));
        if untold * TOLD_FOR_ONE > told {
            order.broken.push(format!("BROKEN {UNTOLD} are few: {untold} beside {told} timeouts that were told"));
        }
        order
    }

    /// How often `what` was seen.
    pub fn times(&self, what: &str) -> u64 {
        self.seen.get(what).copied().unwrap_or(0)
    }

    fn count(&mut self, what: impl Into<String>, n: u64) {
        *self.seen.entry(what.into()).or_default() += n;
    }
    fn see(&mut self, what: impl Into<String>) {
        self.count(what, 1);
    }
    /// Counts under `what` if it holds, and else notes a broken rule.
    fn rule(&mut self, what: &str, holds: bool, log: &[Record], at: usize) {
        if holds {
            self.see(what);
            return;
        }
        let around = log[at.saturating_sub(6)..(at + 4).min(log.len())].iter().map(line).collect::<Vec<_>>();
        self.broken.push(format!("BROKEN {what}: at {}\n  {}", line(&log[at]), around.join("\n  ")));
    }

    fn socket(&mut self, log: &[Record]) {
        let Some(init) = log.iter().position(|r| r.hook() == Hook::Init) else {
            self.see("socket without init (listener)");
            return;
        };
        for (at, r) in log[..init].iter().enumerate() {
            self.see(format!("before init: {} in TCP state {}", name(r), r.tcp_state));
            // a client's SYN is acked before `init`; a server's socket begins by `set_state`
            let known = (r.hook(), r.tcp_state) == (Hook::Ack, SYN_SENT) || r.new_state() == Some(CaState::Open);
            self.rule("before init: only the ack of the SYN, or set_state(Open)", known, log, at);
        }
        self.opening(log, init);
        let mut reduction = Reduction { known: true, ..Reduction::default() };
        for at in 0..log.len() {
            let r = &log[at];
            self.see(format!("hook {:?}", r.hook()));
            if at > init {
                if untold(&log[at - 1], r) {
                    self.see(UNTOLD);
                    reduction = Reduction::default();
                }
                self.transmission(log, at);
            }
            if r.time_ns / 1000 > r.stamp_us + 1000 {
                self.see(format!("the socket's clock is more than 1 ms old: {}", name(r)));
            }
            match r.hook() {
                Hook::Grow => self.grow(log, at),
                Hook::Ssthresh => self.ssthresh(log, at, &mut reduction),
                Hook::State => self.state(log, at),
                Hook::Undo => self.undo(log, at, &mut reduction),
                Hook::Event => self.event(log, at, &reduction),
                Hook::Release => self.rule("release is the last call", at + 1 == log.len(), log, at),
                Hook::Init | Hook::Ack | Hook::Send => {}
            }
        }
    }

    /// init comes once, with a first window and the handshake's RTT.
    fn opening(&mut self, log: &[Record], at: usize) {
        let r = &log[at];
        self.see(if r.tcp_state == SYN_RECEIVED { "init, passive" } else { "init, active" });
        if r.arg == 1 {
            self.see("init of an MPTCP subflow");
        }
        self.rule("init comes once", log.iter().filter(|r| r.hook() == Hook::Init).count() == 1, log, at);
        self.rule("init: first window given, no threshold", r.cwnd > 1 && r.ssthresh == INFINITE, log, at);
        self.rule("init: srtt from the handshake", r.srtt_us > 0, log, at);
        self.rule("init: nothing is in flight", r.in_flight == 0, log, at);
    }

    /// grow follows ack of the same ACK, with nothing but loss handling between, and never during a reduction.
    fn grow(&mut self, log: &[Record], at: usize) {
        let r = &log[at];
        let between = |r: &&Record| {
            matches!(r.hook(), Hook::Ssthresh | Hook::Undo | Hook::State) || r.event() == Some(CaEvent::CompleteCwr)
        };
        let gap = log[..at].iter().rev().take_while(between).count();
        let ack = log[..at - gap].last();
        let same = ack.is_some_and(|a| a.hook() == Hook::Ack && (a.stamp_us, a.una) == (r.stamp_us, r.una));
        self.rule("grow follows ack of the same ACK", same, log, at);
        if gap > 0 {
            let names: Vec<String> = log[at - gap..at].iter().map(name).collect();
            self.see(format!("between ack and grow: {}", names.join(", ")));
        }
        let allowed = !matches!(r.state(), CaState::Cwr | CaState::Recovery);
        self.rule("grow not in CWR or Recovery", allowed, log, at);
        self.see(format!("grow in {:?}", r.state()));
        let slow = if r.cwnd < r.ssthresh { "slow start" } else { "congestion avoidance" };
        self.see(format!("grow in {slow}"));
        self.see(format!("grow by {} packets", if r.acked > 2 { "more".into() } else { r.acked.to_string() }));
        // what the kernel hands to `cong_avoid` as sequence number acked is the new snd_una
        self.rule("grow: una is the ACK's", r.arg == r.una, log, at);
    }

    /// ssthresh comes once, at the start of a reduction, before the state changes.
    fn ssthresh(&mut self, log: &[Record], at: usize, reduction: &mut Reduction) {
        let r = &log[at];
        let ssthresh = r.ssthresh.max(r.cwnd / 2 + r.cwnd / 4);
        *reduction = Reduction { known: true, begun: true, undone: false, ssthresh };
        self.rule("ssthresh: prior_cwnd", r.prior_cwnd == r.cwnd, log, at);
        let over = (r.una.wrapping_sub(r.high_seq) as i32) >= 0;
        let fresh = match r.state() {
            CaState::Open | CaState::Disorder => true,
            // a further timeout, or a loss, after progress within Loss
            CaState::Loss => true,
            // only once the data of the reduction before is acked
            CaState::Cwr | CaState::Recovery => over,
        };
        self.rule("ssthresh begins a new reduction", fresh, log, at);
        let on_ack = log[at - 1].hook() == Hook::Ack && log[at - 1].stamp_us == r.stamp_us;
        self.see(if on_ack { "ssthresh on an ACK, after ack" } else { "ssthresh at a timer, or while sending" });
        let next = log.get(at + 1);
        let follows = next.map_or("nothing".into(), name);
        self.see(format!("ssthresh in {:?}, then {follows}", r.state()));
        let then = next.is_some_and(|n| {
            n.event() == Some(CaEvent::Loss) || matches!(n.new_state(), Some(CaState::Recovery | CaState::Cwr))
        });
        self.rule("ssthresh, then TIMEOUT or the state's change", then, log, at);
        if let Some(n) = next.filter(|n| !untold(r, n)) {
            self.rule("ssthresh: its value holds at the next call", n.ssthresh == r.result, log, at);
        }
    }

    fn state(&mut self, log: &[Record], at: usize) {
        let r = &log[at];
        let (old, new) = (r.state(), r.new_state());
        let before = &log[..at];
        let previous = before.last();
        match new {
            Some(CaState::Loss) => {
                self.rule("Loss: cwnd = in flight + 1", r.cwnd == r.in_flight + 1, log, at);
                let event = previous.is_some_and(|p| p.event() == Some(CaEvent::Loss) && p.stamp_us == r.stamp_us);
                self.see(format!(
                    "timeout in {old:?}, {} ssthresh and TIMEOUT",
                    if event { "told by" } else { "not told by" }
                ));
                if !event {
                    // the reduction that was in progress goes on
                    let within = matches!(old, CaState::Cwr | CaState::Recovery | CaState::Loss);
                    self.rule("Loss without TIMEOUT only within a reduction", within, log, at);
                }
                let last = before.iter().rposition(|p| p.new_state() == Some(CaState::Loss));
                let last = last.filter(|&last| !log[last..=at].windows(2).any(|pair| untold(&pair[0], &pair[1])));
                if let (CaState::Loss, Some(last)) = (old, last) {
                    let progress = log[last].una != r.una;
                    self.rule("timeout in Loss: told if new data was acked since the last", event == progress, log, at);
                }
            }
            Some(CaState::Recovery | CaState::Cwr) => {
                let fresh = previous.is_some_and(|p| p.hook() == Hook::Ssthresh && p.stamp_us == r.stamp_us);
                let goes_on = old == CaState::Cwr;
                self.see(format!(
                    "{} from {old:?} {}",
                    name(r),
                    if fresh { "after ssthresh" } else { "without ssthresh" }
                ));
                self.rule("a reduction's state follows ssthresh", fresh || goes_on, log, at);
            }
            _ => self.see(format!("{} from {old:?}", name(r))),
        }
        // anything else counts as a gap
        if log.get(at + 1).is_some_and(|n| !untold(r, n)) {
            self.see("set_state: the old state within the call, the new one after");
        }
    }

    fn undo(&mut self, log: &[Record], at: usize, reduction: &mut Reduction) {
        let r = &log[at];
        self.see(format!("undo in {:?}", r.state()));
        if reduction.known {
            self.rule("undo only after a reduction", reduction.begun && !reduction.undone, log, at);
        }
        if let Some(n) = log.get(at + 1) {
            self.rule("undo: its value is the window at the next call", n.cwnd == r.result, log, at);
            let back = n.ssthresh == r.ssthresh.max(reduction.ssthresh) || !reduction.known;
            self.rule("undo: ssthresh is the one before, or 3/4 of the window before if that is larger", back, log, at);
        }
        reduction.undone = true;
    }

    fn event(&mut self, log: &[Record], at: usize, reduction: &Reduction) {
        let r = &log[at];
        match r.event() {
            Some(CaEvent::TxStart) => {
                self.rule("TX_START: nothing is in flight", r.in_flight == 0, log, at);
                let what = if r.packets_out > 0 { "all that is out counts as lost" } else { "nothing is out" };
                self.see(format!("TX_START in {:?}, {what}", r.state()));
            }
            Some(CaEvent::CwndRestart) => {
                self.rule("IDLE: nothing is out", r.packets_out == 0, log, at);
                let next = log[at + 1..].iter().find(|n| n.hook() != Hook::Send);
                let starts = next.is_some_and(|n| n.event() == Some(CaEvent::TxStart));
                self.rule("IDLE, then TX_START with nothing but send between", starts, log, at);
                if let Some(n) = log.get(at + 1) {
                    let lowered = if n.cwnd < r.cwnd { "lowers" } else { "leaves" };
                    self.see(format!("IDLE: TCP {lowered} cwnd after it"));
                    self.rule("IDLE: cwnd does not rise", n.cwnd <= r.cwnd, log, at);
                }
            }
            Some(CaEvent::CompleteCwr) => {
                self.see(format!("RECOVERED in {:?}", r.state()));
                if reduction.undone {
                    self.see("RECOVERED after an undo");
                } else if !reduction.known {
                    self.see("RECOVERED after a reduction of which no hook told");
                } else if r.ssthresh >= pathcast_congestion::INFINITE {
                    self.see("RECOVERED with no finite ssthresh: cwnd is left alone");
                } else {
                    self.rule("RECOVERED: cwnd = ssthresh", r.cwnd == r.ssthresh, log, at);
                }
                let near = |r: &Record| matches!(r.new_state(), Some(CaState::Open));
                let ends = near(&log[at - 1]) || log.get(at + 1).is_some_and(near);
                self.rule("RECOVERED: beside set_state(Open)", ends, log, at);
            }
            Some(CaEvent::Loss) => {
                let before = at > 0 && log[at - 1].hook() == Hook::Ssthresh && log[at - 1].result == r.ssthresh;
                self.rule("TIMEOUT: right after ssthresh, which is set", before, log, at);
                let after = log.get(at + 1).is_some_and(|n| n.new_state() == Some(CaState::Loss));
                self.rule("TIMEOUT: then the state Loss", after, log, at);
            }
            Some(CaEvent::EcnNoCe | CaEvent::EcnIsCe) | None => self.see("event about ECN"),
        }
    }

    /// Packets that left between two calls: `send` was called before them.
    fn transmission(&mut self, log: &[Record], at: usize) {
        let (a, b) = (&log[at - 1], &log[at]);
        let packets = b.sent.wrapping_sub(a.sent);
        if packets == 0 {
            if a.hook() == Hook::Send && b.event() != Some(CaEvent::TxStart) {
                self.see("send, and no packet left");
            }
            return;
        }
        let again = if b.resent > a.resent || (a.event() == Some(CaEvent::TxStart) && a.packets_out > 0) {
            "retransmitted"
        } else {
            "new"
        };
        // what may be told in the middle of sending: the first packet, and a full device queue
        let amid = |r: &&Record| {
            r.event() == Some(CaEvent::TxStart)
                || r.new_state() == Some(CaState::Cwr)
                || (r.hook() == Hook::Ssthresh && !matches!(r.state(), CaState::Loss))
        };
        let gap = log[..at].iter().rev().take_while(amid).count();
        let Some(from) = log[..at - gap].last() else { return };
        if from.hook() == Hook::Send {
            self.count(format!("packets sent after send, {again}"), packets.into());
            return;
        }
        let loss = from.new_state() == Some(CaState::Loss);
        let why = if loss { "the first of a timeout" } else { "a probe of the tail" };
        self.count(format!("packets sent without send, {again}, {why}"), packets.into());
        if untold(a, b) {
            return;
        }
        if packets == 1 && again != "new" {
            self.see(SINGLE);
        } else {
            // a timer that repairs a loss or probes with a new packet leaves no other trace
            self.see(UNTOLD);
        }
    }
}

/// Whether the kernel's state shows that hooks were left out between two records that follow each other: it changed without
/// a `set_state`, or more timeouts were counted than told.
fn untold(a: &Record, b: &Record) -> bool {
    let timeouts = b.timeouts.wrapping_sub(a.timeouts) & 0xffff; // the kernel has 16 bits for it
    let told = u32::from(a.new_state() == Some(CaState::Loss));
    b.state() != a.new_state().unwrap_or(a.state()) || timeouts > told
}

/// What is known of the current or last reduction.
#[derive(Default)]
struct Reduction {
    /// No timer of which no hook told has changed it since.
    known: bool,
    begun: bool,
    undone: bool,
    /// To what an undo would set ssthresh.
    ssthresh: u32,
}

fn name(r: &Record) -> String {
    match (r.hook(), r.event(), r.new_state()) {
        (_, Some(event), _) => format!("event {event:?}"),
        (_, _, Some(state)) => format!("set_state({state:?})"),
        (hook, ..) => format!("{hook:?}").to_lowercase(),
    }
}

/// A record on one line.
pub fn line(r: &Record) -> String {
    format!(
        "{:>10}.{:03} us #{} {:22} -> {:<4} in {:8?} cwnd {} ssthresh {} prior {} una {} nxt {} high {} out {} flight {} \
         srtt {} acked {} rtt {} sent {} resent {} marker {} age {} us",
        r.time_ns / 1000 % 10_000_000_000,
        r.time_ns % 1000,
        r.socket,
        name(r),
        r.result,
        r.state(),
        r.cwnd,
        if r.ssthresh == INFINITE { -1 } else { i64::from(r.ssthresh) },
        r.prior_cwnd,
        r.una,
        r.nxt,
        r.high_seq,
        r.packets_out,
        r.in_flight,
        r.srtt_us,
        r.acked,
        r.rtt_us,
        r.sent,
        r.resent,
        r.undo_marker,
        (r.time_ns / 1000).wrapping_sub(r.stamp_us),
    )
}
