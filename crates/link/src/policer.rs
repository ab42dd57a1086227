//! A policer: a token bucket that drops what exceeds it and never queues (RFC 2697 with one colour; Flach et al., "An
//! Internet-wide analysis of traffic policing", SIGCOMM 2016). Tokens are counted as in `bucket.rs`.

use crate::Policer;
use crate::bucket::BYTE;

/// A bucket that lacked `deficit` units at time `at` [ns].
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    rate: u64,
    burst: u64,
    at: u64,
    deficit: u64,
}

impl Meter {
    /// A full bucket.
    pub(crate) fn new(policer: Policer) -> Self {
        Meter { rate: policer.rate.0, burst: policer.burst.0.saturating_mul(BYTE), at: 0, deficit: 0 }
    }

    /// Whether a packet of `bytes` passes at `now`; one that does not takes nothing.
    pub(crate) fn passes(&mut self, now: u64, bytes: u64) -> bool {
        self.fill(now);
        let deficit = self.deficit.saturating_add(bytes.saturating_mul(BYTE));
        let passes = deficit <= self.burst;
        if passes {
            self.deficit = deficit;
        }
        passes
    }

    fn fill(&mut self, now: u64) {
        self.deficit = self.deficit.saturating_sub(self.rate.saturating_mul(now - self.at));
        self.at = now;
    }

    /// Changes rate and size from `now` on; the tokens stay, as far as they fit.
    pub(crate) fn change(&mut self, now: u64, policer: Policer) {
        self.fill(now);
        let tokens = self.burst - self.deficit;
        let new = Meter::new(policer);
        *self = Meter { at: now, deficit: new.burst.saturating_sub(tokens), ..new };
    }
}

/// Changes the policer of a link at `now`; a new one begins full.
pub(crate) fn change(meter: &mut Option<Meter>, now: u64, policer: Option<Policer>) {
    match (meter, policer) {
        (Some(meter), Some(policer)) => meter.change(now, policer),
        (meter, policer) => *meter = policer.map(Meter::new),
    }
}
