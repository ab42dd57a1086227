//! What the logging controller writes down: the mirror of `bpf/hook_log.bpf.c`.

/// A function that TCP calls in a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Hook {
    /// `init`
    Init = 0,
    /// `pkts_acked`, in `flow.h` `ack`
    Ack = 1,
    /// `cong_avoid`, in `flow.h` `grow`
    Grow = 2,
    /// `ssthresh`
    Ssthresh = 3,
    /// `undo_cwnd`, in `flow.h` `undo`
    Undo = 4,
    /// `cwnd_event`, in `flow.h` `event`; [`Record::event`] says which
    Event = 5,
    /// `set_state`, which `flow.h` does not pass on; [`Record::new_state`] says which
    State = 6,
    /// `min_tso_segs`, in `flow.h` `send`
    Send = 7,
    /// `release`
    Release = 8,
}

/// Where TCP's loss recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum CaState {
    /// Nothing unusual.
    Open = 0,
    /// Duplicate ACKs or SACKs have been seen.
    Disorder = 1,
    /// The window is being reduced because of ECN or a full device queue.
    Cwr = 2,
    /// A loss is being repaired.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// What the kernel tells a controller by `cwnd_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum CaEvent {
    /// `FLOW_TX_START`: a packet leaves and nothing is in flight.
    TxStart = 0,
    /// `FLOW_IDLE`
    CwndRestart = 1,
    /// `FLOW_RECOVERED`
    CompleteCwr = 2,
    /// `FLOW_TIMEOUT`
    Loss = 3,
    /// An ECN-capable packet came without a mark.
    EcnNoCe = 4,
    /// One came with a mark.
    EcnIsCe = 5,
}

/// One call of a hook; the view is that on entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Monotonic time of the call (ns).
    pub time_ns: u64,
    /// The socket's own clock (us): the time of the ACK, timer or system call that is being worked on.
    pub stamp_us: u64,
    /// Number of the socket, in the order in which sockets were first seen, from 1.
    pub socket: u32,
    hook: u32,
    /// `init`: 1 for a subflow of an MPTCP connection; `event`: which; `set_state`: the new state; `cong_avoid`: the
    /// sequence number acked.
    pub arg: u32,
    /// What the hook gave back; for `cong_avoid` the window that it set (packet).
    pub result: u32,
    /// Window (packet).
    pub cwnd: u32,
    /// Slow start threshold (packet).
    pub ssthresh: u32,
    /// Window when the current or last reduction began (packet).
    pub prior_cwnd: u32,
    /// First sequence number not acked.
    pub una: u32,
    /// Next sequence number to send.
    pub nxt: u32,
    /// Packets in flight: those out, less SACKed and lost ones, and retransmitted ones again.
    pub in_flight: u32,
    /// Packets sent and not acked cumulatively.
    pub packets_out: u32,
    state: u32,
    /// Smoothed RTT (us); 0 before the first sample.
    pub srtt_us: u32,
    /// `pkts_acked`: packets acked; `cong_avoid`: packets delivered.
    pub acked: u32,
    /// `pkts_acked`: RTT sample (us); 0: none.
    pub rtt_us: u32,
    /// Data packets sent so far, retransmitted ones again.
    pub sent: u32,
    /// Packets retransmitted so far.
    pub resent: u32,
    /// The sequence number whose ACK ends the current reduction.
    pub high_seq: u32,
    /// Where the current reduction can be undone from; 0: nowhere.
    pub undo_marker: u32,
    /// TCP's state: 1 established, 2 SYN sent, 3 SYN received.
    pub tcp_state: u32,
    /// Retransmission timeouts so far, by the kernel's own count, which it raises after `set_state(Loss)`; 0 where it keeps
    /// none (before Linux 6.7).
    pub timeouts: u32,
    _pad: u32,
}

const _: () = assert!(size_of::<Record>() == 104);

const HOOKS: [Hook; 9] = [
    Hook::Init,
    Hook::Ack,
    Hook::Grow,
    Hook::Ssthresh,
    Hook::Undo,
    Hook::Event,
    Hook::State,
    Hook::Send,
    Hook::Release,
];

impl CaState {
    pub(crate) const ALL: [CaState; 5] =
        [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];
}

const EVENTS: [CaEvent; 6] =
    [CaEvent::TxStart, CaEvent::CwndRestart, CaEvent::CompleteCwr, CaEvent::Loss, CaEvent::EcnNoCe, CaEvent::EcnIsCe];

impl Record {
    /// A record as it lies in the ring; `None` if it is none of ours.
    pub(crate) fn read(bytes: &[u8]) -> Option<Record> {
        let bytes: &[u8; 104] = bytes.try_into().ok()?;
        // SAFETY: 104 bytes of integers, and every bit pattern of integers is valid
        let record: Record = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        ((record.hook as usize) < HOOKS.len() && (record.state as usize) < CaState::ALL.len()).then_some(record)
    }
    /// The hook that was called.
    pub fn hook(&self) -> Hook {
        HOOKS[self.hook as usize]
    }
    /// Where loss recovery stood; within `set_state` that is still the old state.
    pub fn state(&self) -> CaState {
        CaState::ALL[self.state as usize]
    }
    /// `cwnd_event`: which event, if it is one that we know.
    pub fn event(&self) -> Option<CaEvent> {
        (self.hook() == Hook::Event).then(|| EVENTS.get(self.arg as usize).copied()).flatten()
    }
    /// `set_state`: the state that follows.
    pub fn new_state(&self) -> Option<CaState> {
        (self.hook() == Hook::State).then(|| CaState::ALL.get(self.arg as usize).copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_foreign_bytes_are_not() {
        let mut words = [0u32; 26];
        (words[4], words[5], words[6], words[15]) = (7, 5, 3, 4);
        let bytes = |words: [u32; 26]| words.map(u32::to_ne_bytes).concat();
        let record = Record::read(&bytes(words)).unwrap();
        assert_eq!((record.socket, record.hook(), record.state()), (7, Hook::Event, CaState::Loss));
        assert_eq!((record.event(), record.new_state()), (Some(CaEvent::Loss), None));
        words[6] = 6;
        assert_eq!(Record::read(&bytes(words)).unwrap().event(), None);
        words[5] = 9;
        assert_eq!(Record::read(&bytes(words)), None);
        assert_eq!(Record::read(&bytes(words)[1..]), None);
    }
}
