//! What describes one direction of a link. The scenario format reads straight into these types, and both the simulator
//! and the emulator build their links from them.

use pathcast_base::{Bytes, Nanos, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Codel, FqCodel, Pie, Trace};

/// One direction of a link. The default is an ideal wire: infinitely fast, no delay, no loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Rate of the serialiser in IP bits per second plus `overhead`, at least 1 bit/s; none: infinitely fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A rate that follows a file, in place of `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub trace: Option<Trace>,
    /// Packets gather until the next opportunity; none: each leaves when it has been sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregation: Option<Aggregation>,
    /// Propagation delay, one way.
    pub delay: Nanos,
    /// A token bucket in front of the queue that drops what exceeds it; none: no policing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// Where packets wait for the serialiser.
    pub queue: Queue,
    /// Loss on the wire, after the line time was used.
    pub loss: Loss,
    /// Added to every IP packet's bytes for the time it takes, as a link layer's headers are; at most 65535 B.
    pub overhead: Bytes,
    /// Extra delay that varies in time; none: constant delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Packets that others overtake; none: all arrive in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// A token bucket in front of the serialiser; none: no shaping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<Bucket>,
    /// How much line time leaves at once in the emulator: more saves CPU, less keeps the ACK clock finer;
    /// at most 10 ms. The simulator releases every packet by itself.
    pub chunk: Nanos,
}

impl Params {
    /// What can go through in the long run; none: no limit.
    pub fn mean_rate(&self) -> Option<Rate> {
        let trace = self.trace.as_ref().map(|trace| Rate((trace.mean() as u64).max(1)));
        let gathered = self.aggregation.map(|a| Rate(a.bytes.0.saturating_mul(8_000_000_000) / a.every.0.max(1)));
        let bucket = self.bucket.map(|bucket| bucket.rate);
        let policer = self.policer.map(|policer| policer.rate);
        [self.rate, trace, gathered, bucket, policer].into_iter().flatten().min()
    }
}

impl Default for Params {
    fn default() -> Self {
        Params {
            rate: None,
            trace: None,
            aggregation: None,
            delay: Nanos::ZERO,
            policer: None,
            queue: Queue::default(),
            loss: Loss::Random(0.0),
            overhead: Bytes(0),
            jitter: None,
            reorder: None,
            bucket: None,
            chunk: Nanos::micros(48),
        }
    }
}

/// Where packets wait. `n` packets or bytes wait PLUS the one in transmission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Drop-tail, at most so many packets waiting, up to 2,000,000 in every kind of queue.
    Packets(u32),
    /// Drop-tail, at most so many bytes waiting, up to 3 GB.
    Bytes(Bytes),
    /// Random early detection.
    Red(Red),
    /// A queue per flow; only a [`DeferredLink`](crate::DeferredLink) has this and those below, and no bucket beside them.
    Fair(Fair),
    /// Controlled delay.
    Codel(Codel),
    /// A queue per hash of the flow, each with controlled delay.
    #[serde(rename = "fq_codel")]
    FqCodel(FqCodel),
    /// Proportional integral controller.
    Pie(Pie),
}

impl Queue {
    /// Whether who goes next is decided when the line is free, so that it needs a [`DeferredLink`](crate::DeferredLink).
    pub fn is_deferred(&self) -> bool {
        !matches!(self, Queue::Packets(_) | Queue::Bytes(_) | Queue::Red(_))
    }

    /// Whether it drops or marks before it is full, other than by random early detection that only drops.
    pub fn is_managed(&self) -> bool {
        match self {
            Queue::Codel(_) | Queue::FqCodel(_) | Queue::Pie(_) => true,
            Queue::Red(red) => red.ecn,
            Queue::Packets(_) | Queue::Bytes(_) | Queue::Fair(_) => false,
        }
    }

    /// Whether a link can change from this queue to `other` while it runs: what waits cannot move between kinds, but
    /// among those of a [`Link`](crate::Link). An error: what it may become.
    ///
    /// # Errors
    /// What it may become.
    pub fn may_become(&self, other: &Queue) -> Result<(), String> {
        let allowed = match (self, other) {
            (Queue::Fair(_), Queue::Fair(_)) | (Queue::Codel(_), Queue::Codel(_)) | (Queue::Pie(_), Queue::Pie(_)) => {
                return Ok(());
            }
            (Queue::FqCodel(old), Queue::FqCodel(new)) if old.flows == new.flows => return Ok(()),
            (old, new) if !old.is_deferred() && !new.is_deferred() => return Ok(()),
            (Queue::Fair(_), _) => "a queue of kind fair, such as { kind = \"fair\", packets = 50 }".into(),
            (Queue::Codel(_), _) => "a queue of kind codel".into(),
            (Queue::Pie(_), _) => "a queue of kind pie".into(),
            (Queue::FqCodel(old), _) => format!("a queue of kind fq_codel with flows = {}", old.flows),
            _ => "packets, bytes or a queue of kind red".into(),
        };
        Err(allowed)
    }
}

impl Default for Queue {
    fn default() -> Self {
        Queue::Packets(1000)
    }
}

/// Random early detection (Floyd and Jacobson, ToN 1993), in packets, with the "gentle" ramp above `max`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average queue below which nothing is dropped, in packets.
    pub min: f64,
    /// Average queue at which `probability` is reached, above `min` and at most `limit`, in packets.
    pub max: f64,
    /// Hard limit of waiting packets.
    #[serde(deserialize_with = "crate::managed::waiting")]
    pub limit: u32,
    /// Drop probability at `max`, above 0 and at most 1.
    #[serde(default = "Red::default_probability")]
    pub probability: f64,
    /// Weight of the newest sample in the average, above 0 and at most 1.
    #[serde(default = "Red::default_weight")]
    pub weight: f64,
    /// Mark packets that can be marked instead of dropping them, while the average is below twice `max`.
    #[serde(default)]
    pub ecn: bool,
}

impl Red {
    fn default_probability() -> f64 {
        0.1
    }
    fn default_weight() -> f64 {
        0.002
    }
}

/// Fair queueing: every flow has a queue of its own, served by deficit round robin (Shreedhar and Varghese, ToN 1996).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fair {
    /// Most packets that wait, of all flows together; when full, the longest queue loses its last packet.
    #[serde(deserialize_with = "crate::managed::waiting")]
    pub packets: u32,
    /// Bytes, overhead included, that a flow may send in a round, 64 to 65535.
    #[serde(default = "Fair::default_quantum")]
    pub quantum: Bytes,
}

impl Fair {
    fn default_quantum() -> Bytes {
        Bytes(1514)
    }
}

/// Delay on top of the propagation delay, piecewise linear in time between knots drawn uniformly from `0..=amplitude`
/// every `step`: correlated, so that keeping packets in order does not bias it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// Largest extra delay.
    pub amplitude: Nanos,
    /// Time between two knots, at least 1 ms.
    #[serde(default = "Jitter::default_step")]
    pub step: Nanos,
}

impl Jitter {
    fn default_step() -> Nanos {
        Nanos::millis(20)
    }
}

/// A share of the packets, each by itself, arrives later than it would in order, as over a longer way: those that come
/// within `distance` behind it overtake it. It is then reordered by RFC 4737 (section 3), with `distance` as its late
/// time; at packets `g` apart its extent, and its displacement by RFC 5236, is ceil(`distance` / `g`) - 1 packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Probability that a packet is one that others overtake, above 0, at most 1.
    pub share: f64,
    /// How much later it arrives, above 0, at most 10 s.
    pub distance: Nanos,
}

/// A token bucket: on average `rate`, after a rest up to `burst` at the link's own rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Rate at which tokens come.
    pub rate: Rate,
    /// Tokens that the bucket holds; at least one packet of 1500 B plus the link's overhead, at most 2 GB.
    pub burst: Bytes,
}

/// A policer: on average `rate`, after a rest up to `burst` at once; what exceeds it is dropped, nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which tokens come.
    pub rate: Rate,
    /// Tokens that the bucket holds; at least one packet of 1500 B plus the link's overhead, at most 2 GB.
    pub burst: Bytes,
}

/// What the serialiser has sent leaves together at the link's next opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregation {
    /// Time between two opportunities, 10 us to 1 s.
    pub every: Nanos,
    /// Most bytes, overhead included, that leave at one; at least one packet of 1500 B plus the overhead, at most 2 GB.
    pub bytes: Bytes,
}

/// Loss on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Loss {
    /// Every packet by itself with this probability, 0..=1.
    Random(f64),
    /// In bursts.
    Bursts(GilbertElliott),
}

impl From<f64> for Loss {
    fn from(probability: f64) -> Self {
        Loss::Random(probability)
    }
}

impl PartialEq<f64> for Loss {
    fn eq(&self, probability: &f64) -> bool {
        *self == Loss::Random(*probability)
    }
}

/// Loss in bursts: a chain of two states (Gilbert 1960, Elliott 1963).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "gilbert-elliott")] // refusing unknown fields, serde refuses the tag
#[schemars(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability that the good state turns bad after a packet, above 0, at most 1.
    pub p: f64,
    /// Probability that the bad state turns good after a packet, above 0, at most 1.
    pub r: f64,
    /// Probability of loss in the good state; default 0.
    #[serde(default)]
    pub good: f64,
    /// Probability of loss in the bad state; default 1.
    #[serde(default = "GilbertElliott::default_bad")]
    pub bad: f64,
}

impl GilbertElliott {
    fn default_bad() -> f64 {
        1.0
    }
}

/// Virtual cross traffic: packets that take queue places and line time, but carry nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Cross {
    /// One packet every `packet / rate`.
    Constant {
        /// Mean rate.
        rate: Rate,
        /// IP bytes of every packet, 1 to 65535.
        packet: Bytes,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean rate.
        rate: Rate,
        /// IP bytes of every packet, 1 to 65535.
        packet: Bytes,
    },
    /// Pareto on and off times, constant at `peak` while on.
    ParetoOnoff {
        /// Mean rate over on and off times.
        rate: Rate,
        /// Rate while on, above `rate`.
        peak: Rate,
        /// Mean on time, at least that of one packet at `peak`.
        on: Nanos,
        /// Shape of both Pareto distributions, at least 1.01 (1.5 in most of the literature).
        shape: f64,
        /// IP bytes of every packet, 1 to 65535.
        packet: Bytes,
    },
}
