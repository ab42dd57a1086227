//! What a link has done so far.

use pathcast_base::Nanos;
use serde::{Serialize, Serializer};

/// A number of packets and their IP bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    pub(crate) fn take_back(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// Real packets that did not reach the far end, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// They exceeded the policer.
    pub policer: Tally,
    /// The queue was full; of a queue per flow also those that were pushed out.
    pub queue: Tally,
    /// Active queue management: random early detection, controlled delay or the proportional integral controller.
    pub aqm: Tally,
    /// Lost on the wire; counted when they would have arrived.
    pub loss: Tally,
}

impl Drops {
    /// All causes together.
    pub fn all(&self) -> Tally {
        let Drops { policer, queue, aqm, loss } = self;
        [policer, queue, aqm, loss].into_iter().fold(Tally::default(), |sum, cause| Tally {
            packets: sum.packets + cause.packets,
            bytes: sum.bytes + cause.bytes,
        })
    }

    /// Counts a packet that was not admitted.
    pub(crate) fn count(&mut self, cause: Cause, bytes: u32) {
        match cause {
            Cause::Policer => self.policer.add(bytes),
            Cause::Queue => self.queue.add(bytes),
            Cause::Aqm => self.aqm.add(bytes),
            Cause::Loss => self.loss.add(bytes),
        }
    }
}

/// Virtual cross traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CrossCounters {
    /// Generated.
    pub offered: Tally,
    /// Entered the queue or the line, and were not dropped from the queue again.
    pub entered: Tally,
    /// Dropped at the policer or the queue, by whatever cause.
    pub dropped: Tally,
}

/// Why a packet did not reach the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It exceeded the policer.
    Policer,
    /// The queue was full.
    Queue,
    /// Active queue management.
    Aqm,
    /// Lost on the wire.
    Loss,
}

/// What a link has done so far. At any instant offered = carried + dropped + inside, for real packets;
/// offered = entered + dropped for cross traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Real packets that were offered.
    pub offered: Tally,
    /// Real packets that reached the far end.
    pub carried: Tally,
    /// Real packets that did not.
    pub dropped: Drops,
    /// Real packets that active queue management marked instead of dropping them, whatever became of them later.
    pub marked: Tally,
    /// Virtual cross traffic.
    pub cross: CrossCounters,
    /// The most packets, and the most bytes, that have waited at once, cross traffic included.
    pub queue_max: Tally,
    /// Line time used, by real packets and cross traffic; over the time elapsed it is the utilisation.
    #[serde(rename = "busy_s", serialize_with = "seconds")]
    pub busy: Nanos,
    /// Time that real packets have waited until their transmission began, summed up.
    #[serde(rename = "waited_s", serialize_with = "seconds")]
    pub waited: Nanos,
}

fn seconds<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_with_units_in_the_names() {
        let counters = Counters { busy: Nanos::millis(1500), ..Counters::default() };
        let json = serde_json::to_value(counters).unwrap();
        assert_eq!(json["busy_s"], 1.5);
        assert_eq!(json["dropped"]["loss"]["bytes"], 0);
    }
}
