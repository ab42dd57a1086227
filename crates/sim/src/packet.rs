//! A packet: a small value, copied from link to link. Positions are counted in segments, each of one MSS but the last.

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From whoever opens the subflow.
    Syn,
    /// The answer to it.
    SynAck,
    /// The third of the handshake; from a receiver that opens, also the request.
    Request,
    /// The fourth of a joining subflow's handshake (RFC 8684, section 3.2).
    Confirm,
    /// A segment.
    Data,
    /// An acknowledgement.
    Ack,
    /// From the receiver, which has read to the end: it acknowledges, too.
    Fin,
    /// The answer to it.
    FinAck,
    /// A packet of a machine that a host carries; all about it is in the store of payloads.
    Probe,
}

/// The duplicate that this ACK answers (RFC 2883) says that a retransmission was for nothing.
pub(crate) const DUPLICATE: u8 = 1;
/// The last segment of the stream.
pub(crate) const LAST: u8 = 2;
/// A retransmission.
pub(crate) const AGAIN: u8 = 4;
/// A link may mark it (RFC 3168: ECT).
pub(crate) const ECT: u8 = 8;
/// A link has marked it (RFC 3168: CE).
pub(crate) const CE: u8 = 16;
/// ACK: a segment came that a link had marked (RFC 3168: ECE).
pub(crate) const ECE: u8 = 32;
/// Data: the window has been reduced for that (RFC 3168: CWR).
pub(crate) const CWR: u8 = 64;
/// No SACK blocks.
pub(crate) const NONE: u32 = u32::MAX;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Data: its segment; ACK: the next one expected.
    pub seq: u64,
    /// Data: its place in the connection's stream [segment]; ACK: the next one expected there.
    pub dsn: u64,
    /// When it was sent [ns]; ACK: the stamp that it echoes (RFC 7323).
    pub stamp: u64,
    /// Place in the table of hops: the link it is on.
    pub hop: u32,
    /// Its subflow; of machines, a number of its own for fair queues.
    pub flow: u32,
    /// ACK: its SACK blocks in the store; of machines, its payload in theirs.
    pub extra: u32,
    /// ACK: segments that the receiver has room for from `seq`, of Multipath TCP from `dsn`, on.
    pub window: u32,
    /// IP bytes.
    pub bytes: u16,
    /// Which user of the subflow's slot it belongs to.
    pub generation: u16,
    pub kind: Kind,
    pub flags: u8,
}

/// A run of segments, from the first to behind the last.
pub(crate) type Range = (u64, u64);

/// SACK blocks of one ACK, the newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub range: [Range; 4],
    pub len: u8,
    /// When the ACK was sent [us], where the timestamps tell it.
    pub sent_us: u32,
}

impl Blocks {
    pub(crate) fn as_slice(&self) -> &[Range] {
        &self.range[..self.len as usize]
    }
}

/// The blocks of the ACKs on their way, so that other packets need not carry room for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    blocks: Vec<Blocks>,
    free: Vec<u32>,
}

impl Store {
    pub(crate) fn put(&mut self, blocks: Blocks) -> u32 {
        if let Some(at) = self.free.pop() {
            self.blocks[at as usize] = blocks;
            return at;
        }
        self.blocks.push(blocks);
        self.blocks.len() as u32 - 1
    }

    /// Takes the blocks of a packet out; without blocks it gives none.
    pub(crate) fn take(&mut self, at: u32) -> Blocks {
        if at == NONE {
            return Blocks::default();
        }
        self.free.push(at);
        self.blocks[at as usize]
    }

    /// Blocks that packets still refer to.
    pub(crate) fn in_use(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}
