//! Which values of the parameters make a link.

use std::fmt::Display;

use pathcast_base::{Bytes, Exit, Fault, Nanos, Rate};

use crate::{Cross, GilbertElliott, Loss, Params, Queue, Reorder};

/// A parameter outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is {value}; allowed: {allowed}")]
pub struct ParamError {
    /// The key, dotted from the link or the cross traffic on: `queue.red.min`.
    pub key: &'static str,
    /// The wrong value as it would be written.
    pub value: String,
    /// The allowed range.
    pub allowed: String,
}

impl Fault for ParamError {
    fn code(&self) -> &'static str {
        "link-parameter"
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

fn ensure(holds: bool, key: &'static str, value: impl Display, allowed: impl Display) -> Result<(), ParamError> {
    if holds { Ok(()) } else { Err(ParamError { key, value: value.to_string(), allowed: allowed.to_string() }) }
}

/// So many packets may wait at a line, whatever their sizes: each costs some bytes of memory.
pub(crate) const MOST_WAITING: u32 = 2_000_000;
/// Most queues that flows are hashed to.
pub(crate) const MOST_FLOWS: u32 = 65_536;
/// As many as there can be of common packets.
const MOST_BYTES: Bytes = Bytes(MOST_WAITING as u64 * 1500);

/// The longest time constant of a queue.
const LONG: Nanos = Nanos::secs(10);

/// In `(0, 1]`; false for NaN.
fn positive_share(p: f64) -> bool {
    p > 0.0 && p <= 1.0
}

impl Params {
    /// Refuses values that make no link.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn check(&self) -> Result<(), ParamError> {
        if let Some(rate) = self.rate {
            ensure(rate.0 >= 1, "rate", rate, "at least 1bit; leave it out for an infinitely fast link")?;
        }
        if let Some(trace) = &self.trace {
            ensure((0.01..=100.0).contains(&trace.scale), "rate.scale", trace.scale, "0.01 to 100")?;
            ensure(self.bucket.is_none(), "bucket", "a token bucket", "none beside a trace")?;
        }
        match self.loss {
            Loss::Random(p) => ensure((0.0..=1.0).contains(&p), "loss", p, "0 to 1")?,
            Loss::Bursts(GilbertElliott { p, r, good, bad }) => {
                ensure(positive_share(p), "loss.p", p, "above 0, at most 1")?;
                ensure(positive_share(r), "loss.r", r, "above 0, at most 1")?;
                ensure((0.0..=1.0).contains(&good), "loss.good", good, "0 to 1")?;
                ensure((0.0..=1.0).contains(&bad), "loss.bad", bad, "0 to 1")?;
            }
        }
        ensure(self.overhead.0 <= 65_535, "overhead", self.overhead, "at most 65535B")?;
        ensure(self.chunk <= Nanos::millis(10), "chunk", self.chunk, "at most 10ms")?;
        let few = |key, packets: u32| {
            ensure(
                packets <= MOST_WAITING,
                key,
                format!("{packets} packets"),
                format!("at most {MOST_WAITING} packets"),
            )
        };
        match &self.queue {
            Queue::Packets(packets) => few("queue", *packets)?,
            Queue::Bytes(bytes) => ensure(*bytes <= MOST_BYTES, "queue", bytes, format!("at most {MOST_BYTES}"))?,
            Queue::Red(red) => few("queue.red.limit", red.limit)?,
            Queue::Fair(fair) => few("queue.fair.packets", fair.packets)?,
            Queue::Codel(codel) => few("queue.codel.limit", codel.limit)?,
            Queue::FqCodel(fq) => few("queue.fq_codel.limit", fq.limit)?,
            Queue::Pie(pie) => few("queue.pie.limit", pie.limit)?,
        }
        self.check_managed()?;
        if let Queue::Red(red) = &self.queue {
            ensure(red.min >= 0.0 && red.min.is_finite(), "queue.red.min", red.min, "at least 0 packets")?;
            let above = format!("above queue.red.min ({}), at most queue.red.limit ({})", red.min, red.limit);
            ensure(red.max > red.min && red.max <= f64::from(red.limit), "queue.red.max", red.max, above)?;
            ensure(positive_share(red.probability), "queue.red.probability", red.probability, "above 0, at most 1")?;
            ensure(positive_share(red.weight), "queue.red.weight", red.weight, "above 0, at most 1")?;
        }
        if let Queue::Fair(fair) = &self.queue {
            let quantum = (64..=65_535).contains(&fair.quantum.0);
            ensure(quantum, "queue.fair.quantum", fair.quantum, "64B to 65535B")?;
            ensure(self.bucket.is_none(), "bucket", "a token bucket", "none beside a fair queue")?;
        } else if self.queue.is_deferred() {
            ensure(
                self.bucket.is_none(),
                "bucket",
                "a token bucket",
                "none beside a queue of kind codel, fq_codel or pie",
            )?;
        }
        if let Some(jitter) = &self.jitter {
            ensure(jitter.step >= Nanos::millis(1), "jitter.step", jitter.step, "at least 1ms")?;
        }
        if let Some(Reorder { share, distance }) = self.reorder {
            ensure(positive_share(share), "reorder.share", share, "above 0, at most 1")?;
            let allowed = format!("above 0s, at most {LONG}");
            ensure((Nanos(1)..=LONG).contains(&distance), "reorder.distance", distance, allowed)?;
        }
        let least = Bytes(1500 + self.overhead.0);
        let burst = |key, burst| {
            let allowed = format!("{least} (1500B and the overhead) to 2GB");
            ensure((least..=Bytes(2_000_000_000)).contains(&burst), key, burst, allowed)
        };
        if let Some(bucket) = &self.bucket {
            ensure(bucket.rate.0 >= 1, "bucket.rate", bucket.rate, "at least 1bit")?;
            burst("bucket.burst", bucket.burst)?;
        }
        if let Some(aggregation) = &self.aggregation {
            let every = (Nanos::micros(10)..=Nanos::secs(1)).contains(&aggregation.every);
            ensure(every, "aggregation.every", aggregation.every, "10us to 1s")?;
            burst("aggregation.bytes", aggregation.bytes)?;
            ensure(self.bucket.is_none(), "bucket", "a token bucket", "none beside aggregation")?;
        }
        if let Some(policer) = &self.policer {
            ensure(policer.rate.0 >= 1, "policer.rate", policer.rate, "at least 1bit")?;
            burst("policer.burst", policer.burst)?;
        }
        Ok(())
    }

    fn check_managed(&self) -> Result<(), ParamError> {
        let codel = |keys: [&'static str; 2], target: Nanos, interval: Nanos| {
            ensure(interval.0 >= 1 && interval <= LONG, keys[1], interval, format!("above 0s, at most {LONG}"))?;
            let allowed = format!("above 0s, below the interval ({interval})");
            ensure(target.0 >= 1 && target < interval, keys[0], target, allowed)
        };
        match &self.queue {
            Queue::Codel(c) => codel(["queue.codel.target", "queue.codel.interval"], c.target, c.interval),
            Queue::FqCodel(fq) => {
                codel(["queue.fq_codel.target", "queue.fq_codel.interval"], fq.target, fq.interval)?;
                ensure(
                    (1..=MOST_FLOWS).contains(&fq.flows),
                    "queue.fq_codel.flows",
                    fq.flows,
                    format!("1 to {MOST_FLOWS}"),
                )?;
                let quantum = (64..=65_535).contains(&fq.quantum.0);
                ensure(quantum, "queue.fq_codel.quantum", fq.quantum, "64B to 65535B")?;
                ensure(fq.memory <= MOST_BYTES, "queue.fq_codel.memory", fq.memory, format!("at most {MOST_BYTES}"))
            }
            Queue::Pie(pie) => {
                let range = |least: Nanos| format!("{least} to {LONG}");
                let within = |time: Nanos, least: Nanos| (least..=LONG).contains(&time);
                ensure(within(pie.target, Nanos(1)), "queue.pie.target", pie.target, range(Nanos(1)))?;
                let t_update = within(pie.t_update, Nanos::millis(1));
                ensure(t_update, "queue.pie.t_update", pie.t_update, range(Nanos::millis(1)))?;
                ensure((0.0..=32.0).contains(&pie.alpha), "queue.pie.alpha", pie.alpha, "0 to 32")?;
                ensure((0.0..=32.0).contains(&pie.beta), "queue.pie.beta", pie.beta, "0 to 32")?;
                ensure(pie.max_burst <= LONG, "queue.pie.max_burst", pie.max_burst, range(Nanos::ZERO))
            }
            _ => Ok(()),
        }
    }
}

impl Cross {
    /// Refuses values that make no traffic.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn check(&self) -> Result<(), ParamError> {
        let (Cross::Constant { rate, packet }
        | Cross::Poisson { rate, packet }
        | Cross::ParetoOnoff { rate, packet, .. }) = self;
        ensure((1..=65_535).contains(&packet.0), "packet", packet, "1B to 65535B")?;
        // more than a packet a nanosecond would not advance the clock
        let most = Rate(packet.0 * 8_000_000_000);
        ensure(rate.0 >= 1 && *rate <= most, "rate", rate, format!("1bit to {most} for packets of {packet}"))?;
        if let Cross::ParetoOnoff { peak, on, shape, .. } = self {
            ensure(
                peak > rate && *peak <= most,
                "peak",
                peak,
                format!("above the mean rate ({rate}), at most {most}"),
            )?;
            // nearer to 1 nearly all of the mean lies in bursts too rare to come
            ensure(*shape >= 1.01 && shape.is_finite(), "shape", shape, "at least 1.01")?;
            let one = peak.time_for(packet.0);
            ensure(*on >= one, "on", on, format!("at least the time of one packet at the peak rate ({one})"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bucket, Codel, Fair, FqCodel, Jitter, Pie, Policer, Red};

    fn red(change: impl Fn(&mut Red)) -> Params {
        let mut red = Red { min: 5.0, max: 15.0, limit: 60, probability: 0.1, weight: 0.002, ecn: false };
        change(&mut red);
        Params { queue: Queue::Red(red), ..Params::default() }
    }

    fn fq_codel(change: impl Fn(&mut FqCodel)) -> Params {
        let mut law = FqCodel::default();
        change(&mut law);
        Params { queue: Queue::FqCodel(law), ..Params::default() }
    }

    fn pie(change: impl Fn(&mut Pie)) -> Params {
        let mut law = Pie::default();
        change(&mut law);
        Params { queue: Queue::Pie(law), ..Params::default() }
    }

    #[test]
    fn good_values_pass() {
        assert_eq!(Params::default().check(), Ok(()));
        assert_eq!(red(|_| ()).check(), Ok(()));
        let fair = Fair { packets: 0, quantum: Bytes(64) };
        assert_eq!(Params { queue: Queue::Fair(fair), ..Params::default() }.check(), Ok(()));
        assert_eq!(red(|r| (r.max, r.probability, r.weight) = (60.0, 1.0, 1.0)).check(), Ok(()));
    }

    #[test]
    fn wrong_links_are_refused_by_key() {
        let default = Params::default;
        let bucket = |rate, burst| Some(Bucket { rate: Rate(rate), burst: Bytes(burst) });
        let bursts =
            |p, r, good, bad| Params { loss: Loss::Bursts(GilbertElliott { p, r, good, bad }), ..Params::default() };
        let policed = |rate, burst| Params {
            policer: Some(Policer { rate: Rate(rate), burst: Bytes(burst) }),
            ..Params::default()
        };
        let codel = |target, interval| {
            let law = Codel { target: Nanos(target), interval: Nanos(interval), ..Codel::default() };
            Params { queue: Queue::Codel(law), ..Params::default() }
        };
        let fair = |quantum| Queue::Fair(Fair { packets: 100, quantum: Bytes(quantum) });
        for (key, params) in [
            ("queue", Params { queue: Queue::Packets(MOST_WAITING + 1), ..default() }),
            ("queue", Params { queue: Queue::Bytes(Bytes(MOST_BYTES.0 + 1)), ..default() }),
            ("queue.red.limit", red(|r| r.limit = MOST_WAITING + 1)),
            ("queue.fair.packets", {
                let fair = Fair { packets: MOST_WAITING + 1, quantum: Bytes(1514) };
                Params { queue: Queue::Fair(fair), ..default() }
            }),
            ("queue.fair.quantum", Params { queue: fair(63), ..default() }),
            ("queue.fair.quantum", Params { queue: fair(65_536), ..default() }),
            ("queue.codel.target", codel(0, 10)),
            ("queue.codel.target", codel(10, 10)),
            ("queue.codel.interval", codel(1, 0)),
            ("queue.codel.interval", codel(1, LONG.0 + 1)),
            ("queue.fq_codel.target", fq_codel(|q| q.target = q.interval)),
            ("queue.fq_codel.interval", fq_codel(|q| q.interval = Nanos(LONG.0 + 1))),
            ("queue.fq_codel.flows", fq_codel(|q| q.flows = 0)),
            ("queue.fq_codel.flows", fq_codel(|q| q.flows = MOST_FLOWS + 1)),
            ("queue.fq_codel.quantum", fq_codel(|q| q.quantum = Bytes(63))),
            ("queue.fq_codel.quantum", fq_codel(|q| q.quantum = Bytes(65_536))),
            ("queue.fq_codel.memory", fq_codel(|q| q.memory = Bytes(MOST_BYTES.0 + 1))),
            ("queue.pie.target", pie(|q| q.target = Nanos(0))),
            ("queue.pie.t_update", pie(|q| q.t_update = Nanos(999_999))),
            ("queue.pie.alpha", pie(|q| q.alpha = 32.1)),
            ("queue.pie.beta", pie(|q| q.beta = f64::NAN)),
            ("queue.pie.max_burst", pie(|q| q.max_burst = Nanos(LONG.0 + 1))),
            ("bucket", Params { queue: fair(1514), bucket: bucket(1, 1500), ..default() }),
            ("rate", Params { rate: Some(Rate(0)), ..default() }),
            ("loss", Params { loss: f64::NAN.into(), ..default() }),
            ("loss", Params { loss: 1.01.into(), ..default() }),
            ("loss", Params { loss: (-0.1).into(), ..default() }),
            ("loss", Params { loss: f64::INFINITY.into(), ..default() }),
            ("loss.p", bursts(0.0, 0.5, 0.0, 1.0)),
            ("loss.p", bursts(1.1, 0.5, 0.0, 1.0)),
            ("loss.r", bursts(0.1, f64::NAN, 0.0, 1.0)),
            ("loss.good", bursts(0.1, 0.5, -0.1, 1.0)),
            ("loss.bad", bursts(0.1, 0.5, 0.0, 1.5)),
            ("policer.rate", policed(0, 1500)),
            ("policer.burst", policed(1, 1499)),
            ("policer.burst", policed(1, 2_000_000_001)),
            ("overhead", Params { overhead: Bytes(70_000), ..default() }),
            ("chunk", Params { chunk: Nanos::millis(11), ..default() }),
            ("queue.red.min", red(|r| r.min = -1.0)),
            ("queue.red.max", red(|r| r.max = 5.0)),
            ("queue.red.max", red(|r| r.max = 61.0)),
            ("queue.red.max", red(|r| r.max = f64::NAN)),
            ("queue.red.probability", red(|r| r.probability = 0.0)),
            ("queue.red.weight", red(|r| r.weight = 1.1)),
            ("jitter.step", {
                let jitter = Jitter { amplitude: Nanos::millis(1), step: Nanos::micros(999) };
                Params { jitter: Some(jitter), ..default() }
            }),
            ("bucket.rate", Params { bucket: bucket(0, 1500), ..default() }),
            ("bucket.burst", Params { bucket: bucket(1, 1499), ..default() }),
            ("bucket.burst", Params { bucket: bucket(1, 1537), overhead: Bytes(38), ..default() }),
        ] {
            let error = params.check().unwrap_err();
            assert_eq!(error.key, key);
            assert_eq!(error.exit(), Exit::Usage);
        }
        let text = Params { loss: 2.0.into(), ..default() }.check().unwrap_err().to_string();
        assert_eq!(text, "`loss` is 2; allowed: 0 to 1");
    }

    #[test]
    fn wrong_cross_traffic_is_refused_by_key() {
        let onoff = |rate, peak, on, shape, packet| Cross::ParetoOnoff {
            rate: Rate(rate),
            peak: Rate(peak),
            on: Nanos(on),
            shape,
            packet: Bytes(packet),
        };
        assert_eq!(onoff(1_000_000, 2_000_000, 6_000_000, 1.5, 1500).check(), Ok(()));
        for (key, cross) in [
            ("rate", Cross::Constant { rate: Rate(0), packet: Bytes(1500) }),
            ("rate", Cross::Poisson { rate: Rate(9_000_000_000), packet: Bytes(1) }),
            ("packet", Cross::Poisson { rate: Rate(1), packet: Bytes(0) }),
            ("packet", Cross::Poisson { rate: Rate(1), packet: Bytes(65_536) }),
            ("peak", onoff(1_000_000, 1_000_000, 6_000_000, 1.5, 1500)),
            ("shape", onoff(1_000_000, 2_000_000, 6_000_000, 1.0, 1500)),
            ("shape", onoff(1_000_000, 2_000_000, 6_000_000, f64::NAN, 1500)),
            ("on", onoff(1_000_000, 2_000_000, 5_999_999, 1.5, 1500)),
        ] {
            assert_eq!(cross.check().unwrap_err().key, key);
        }
    }
}
