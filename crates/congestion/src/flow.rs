//! What a controller sees and may set: the Rust mirror of `c/flow.h`, field for field.

/// Slots of a connection; one subflow more runs as a group of its own.
pub const PEERS: usize = 16;
/// 64-bit words that a controller publishes to its siblings.
pub const WORDS: usize = 2;
/// ssthresh before the first loss.
pub const INFINITE: u32 = 0x7fff_ffff;
/// No sibling: `Flow::post_to` when nothing is asked.
pub const NOBODY: u32 = u32::MAX;
/// The bound of cwnd, of a finite ssthresh and of `cwnd_max` up to which the controllers' arithmetic is exact.
pub const WINDOW_MAX: u32 = 1 << 30;

/// Where TCP's loss recovery stands, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Nothing unusual.
    #[default]
    Open = 0,
    /// Duplicate ACKs or SACKs have been seen.
    Disorder = 1,
    /// The window is being reduced because of ECN.
    Cwr = 2,
    /// A loss is being repaired.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

/// What a controller is told by [`Instance::event`](crate::Instance::event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    /// First packet after nothing was in flight.
    TxStart = 0,
    /// Idle for longer than the RTO; TCP lowers cwnd after this call.
    Idle = 1,
    /// Recovery is over, cwnd is ssthresh.
    Recovered = 2,
    /// RTO: ssthresh is set, TCP sets cwnd to what is in flight + 1 after this call.
    Timeout = 3,
}

/// One subflow as its siblings last heard of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Peer {
    /// 1 if the slot is taken.
    pub used: u32,
    /// Order of establishment within the connection, from 1.
    pub id: u32,
    /// Window (packet).
    pub cwnd: u32,
    /// Slow start threshold (packet).
    pub ssthresh: u32,
    /// Smoothed RTT (us); 0 before the first sample.
    pub srtt_us: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets that siblings asked it to give up and that it has not yet seen.
    pub mail: u32,
    pub(crate) pad: u32,
    /// The controller's own.
    pub word: [u64; WORDS],
}

/// The subflows of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Group {
    /// Live subflows, this one included.
    pub n: u32,
    /// How many ever joined.
    pub joins: u32,
    /// The slots.
    pub peer: [Peer; PEERS],
}

/// A flow as a controller sees it. The first eight fields are what a controller sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Window (packet), at least 1.
    pub cwnd: u32,
    /// Packets acked towards the next increase.
    pub cwnd_cnt: u32,
    /// Slow start threshold (packet).
    pub ssthresh: u32,
    /// Packets that a transmit opportunity may send at once; 0: TCP decides.
    pub burst: u32,
    /// Pace in bytes per second; 0: TCP decides.
    pub pace_bytes_per_s: u64,
    /// Published to the siblings.
    pub word: [u64; WORDS],
    /// The sibling that is asked to give up packets, or [`NOBODY`].
    pub post_to: u32,
    /// How many packets it is asked for.
    pub post: u32,
    /// Monotonic time (us).
    pub now_us: u64,
    /// First byte not acked; does not wrap.
    pub una: u64,
    /// Next byte to send; does not wrap.
    pub nxt: u64,
    /// Bytes of a full packet.
    pub mss: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Smoothed RTT (us), RFC 6298 with the gains applied per sample; 0 before the first.
    pub srtt_us: u32,
    /// Its variation (us).
    pub rttvar_us: u32,
    /// cwnd when the current or last reduction began (packet).
    pub prior_cwnd: u32,
    state: u32,
    flags: u32,
    /// Own slot in the group.
    pub slot: u32,
    /// Packets that siblings ask this flow to give up; for `grow`, told once.
    pub mail: u32,
    /// Bound on cwnd set by the application (packet).
    pub cwnd_max: u32,
    forget: u64,
    /// The connection's subflows.
    pub group: Group,
    /// Packets acked since the start, in any order, modulo 2^32.
    pub delivered: u32,
    /// Packets marked as lost since the start, one that is lost again counts again, modulo 2^32.
    pub lost: u32,
    /// Set by `send`: packets that may be in flight in CWR and Recovery; 0: TCP decides.
    pub window: u32,
    pad: u32,
}

const LIMITED: u32 = 1;
const MULTIPATH: u32 = 2;
const STARVED: u32 = 4;

impl Flow {
    /// A flow of its own with a first window of `cwnd` packets of `mss` bytes, and no limit on slow start.
    pub fn new(mss: u32, cwnd: u32) -> Self {
        let mut flow = Flow {
            cwnd,
            cwnd_cnt: 0,
            ssthresh: INFINITE,
            burst: 0,
            pace_bytes_per_s: 0,
            word: [0; WORDS],
            post_to: NOBODY,
            post: 0,
            now_us: 0,
            una: 0,
            nxt: 0,
            mss,
            in_flight: 0,
            srtt_us: 0,
            rttvar_us: 0,
            prior_cwnd: 0,
            state: 0,
            flags: LIMITED,
            slot: 0,
            mail: 0,
            cwnd_max: WINDOW_MAX,
            forget: 0,
            group: Group::default(),
            delivered: 0,
            lost: 0,
            window: 0,
            pad: 0,
        };
        flow.alone();
        flow
    }
    /// Makes the flow a group of one, as plain TCP is.
    pub fn alone(&mut self) {
        self.slot = 0;
        self.mail = 0;
        self.group.n = 1;
        self.group.joins = 1;
        self.group.peer = [Peer::default(); PEERS];
        self.group.peer[0] = self.report(1, 0);
    }
    /// What siblings hear of this flow.
    pub(crate) fn report(&self, id: u32, mail: u32) -> Peer {
        let Flow { cwnd, ssthresh, srtt_us, in_flight, word, .. } = *self;
        Peer { used: 1, id, cwnd, ssthresh, srtt_us, in_flight, mail, pad: 0, word }
    }
    /// Where loss recovery stands.
    pub fn set_state(&mut self, state: State) {
        self.state = state as u32;
    }
    /// Whether the window, not the application, held the flow back.
    pub fn set_limited(&mut self, limited: bool) {
        self.set_flag(LIMITED, limited);
    }
    /// Whether the flow is a subflow of an MPTCP connection.
    pub fn set_multipath(&mut self, multipath: bool) {
        self.set_flag(MULTIPATH, multipath);
    }
    /// Whether some of what is in flight left when the application had nothing more to send.
    pub fn set_starved(&mut self, starved: bool) {
        self.set_flag(STARVED, starved);
    }
    fn set_flag(&mut self, flag: u32, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// What one ACK says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ack {
    /// Packets: for `ack` newly acked cumulatively, for `grow` newly delivered.
    pub acked: u32,
    /// RTT of the newest packet acked or SACKed (us); 0: none.
    pub rtt_us: u32,
    owd_us: u32,
    flags: u32,
}

impl Ack {
    /// An ACK for `acked` packets with this RTT sample (us), 0 if it has none.
    pub fn new(acked: u32, rtt_us: u32) -> Self {
        Ack { acked, rtt_us, owd_us: 0, flags: 0 }
    }
    /// The same with a one-way delay to the receiver (us), of unknown constant offset, modulo 2^32.
    pub fn with_one_way_delay(self, owd_us: u32) -> Self {
        Ack { owd_us, flags: 1, ..self }
    }
}
