//! Loss on the wire: each packet by itself, or in bursts.
//!
//! Bursts are a Markov chain of two states, good and bad, that may change from packet to packet: E. N. Gilbert, "Capacity
//! of a burst-noise channel", BSTJ 39(5), 1960; E. O. Elliott, BSTJ 42(5), 1963. `p` is the chance to turn bad, `r` to
//! turn good again; a packet is lost with probability `good` or `bad` (1-k and 1-h in the notation of Hasslinger and
//! Hohlfeld, MMB 2008).

use pathcast_base::Stream;

use crate::{GilbertElliott, Loss};

/// A probability as a threshold of 53 random bits.
fn threshold(p: f64) -> u64 {
    (p * (1u64 << 53) as f64).ceil() as u64
}

#[derive(Clone, Debug)]
enum Kind {
    None,
    Random(u64),
    Bursts(Chain),
}

#[derive(Clone, Debug)]
struct Chain {
    /// Leaving the good and the bad state.
    leave: [u64; 2],
    /// Loss in the good and the bad state.
    lose: [u64; 2],
    bad: bool,
}

/// Which packets are lost.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    kind: Kind,
    stream: Stream,
}

impl Losses {
    pub(crate) fn new(loss: Loss, stream: Stream) -> Self {
        let mut losses = Losses { kind: Kind::None, stream };
        losses.change(loss);
        losses
    }

    /// From the next packet on; a chain that was there keeps its state, a new one draws it from its long-run shares.
    pub(crate) fn change(&mut self, loss: Loss) {
        self.kind = match loss {
            Loss::Random(0.0) => Kind::None,
            Loss::Random(p) => Kind::Random(threshold(p)),
            Loss::Bursts(GilbertElliott { p, r, good, bad }) => {
                let state = match &self.kind {
                    Kind::Bursts(chain) => chain.bad,
                    _ => self.stream.chance(p / (p + r)),
                };
                let (leave, lose) = ([threshold(p), threshold(r)], [threshold(good), threshold(bad)]);
                Kind::Bursts(Chain { leave, lose, bad: state })
            }
        };
    }

    /// From the next packet on by other random numbers.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.stream.reseed(seed);
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn strikes(&mut self) -> bool {
        match &mut self.kind {
            Kind::None => false,
            Kind::Random(threshold) => self.stream.bits() >> 11 < *threshold,
            Kind::Bursts(chain) => chain.step(&mut self.stream),
        }
    }
}

impl Chain {
    #[cold]
    fn step(&mut self, stream: &mut Stream) -> bool {
        let state = usize::from(self.bad);
        let lost = stream.bits() >> 11 < self.lose[state];
        self.bad ^= stream.bits() >> 11 < self.leave[state];
        lost
    }
}
