//! What one direction of a path has come to, as its sender knows it, and how the far end tells it.

pub(super) use pathcast_estimate::WhyNot as Reason;
use pathcast_estimate::{Discipline, Estimate};
use pathcast_session::codec::{LATEST, Reader, push_varint, unzigzag, whole, zigzag};

/// A rate with its interval [bit/s].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub value: Option<f64>,
    pub low: f64,
    pub high: f64,
    pub why: Option<Reason>,
    pub discipline: Discipline,
}

impl Figure {
    pub fn none(why: Reason) -> Figure {
        Figure { value: None, low: 0.0, high: f64::INFINITY, why: Some(why), discipline: Discipline::Unknown }
    }

    /// An estimate; `why` if the sending was cut short.
    pub fn of(estimate: &Estimate, why: Option<Reason>) -> Figure {
        Figure {
            value: estimate.value_bps,
            low: estimate.low_bps,
            high: estimate.high_bps,
            why: why.or(estimate.why_not),
            discipline: estimate.discipline,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.value.is_some().into());
        for number in [self.value.unwrap_or(0.0), self.low, self.high] {
            out.extend(number.to_bits().to_be_bytes());
        }
        out.push(self.why.map_or(0, |why| why as u8));
        out.push(match self.discipline {
            Discipline::Unknown => 0,
            Discipline::Shared => 1,
            Discipline::Fair => 2,
        });
    }

    fn read(r: &mut Reader<'_>) -> Option<Figure> {
        let (known, value, low, high) = (r.flag()?, r.f64()?, r.f64()?, r.f64()?);
        let code = r.u8()?;
        let why = Reason::of(code);
        let discipline = match r.u8()? {
            0 => Discipline::Unknown,
            1 => Discipline::Shared,
            2 => Discipline::Fair,
            _ => return None,
        };
        // a number that is none, or less than nothing, is nobody's estimate
        let sound = [value, low, high].iter().all(|number| *number >= 0.0) && (code == 0 || why.is_some());
        sound.then_some(Figure { value: known.then_some(value), low, high, why, discipline })
    }
}

/// A small packet: when it left, by the sender's clock [ns], and its delay with the clocks' offset in it [ns].
pub(super) type DelaySample = (u64, i64);

/// So many delays are told at most.
pub(super) const MAX_DELAY_SAMPLES: usize = 60;

/// What one direction has come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub capacity: Figure,
    pub available: Figure,
    /// Trains sent, and of how many a report came.
    pub trains: u64,
    pub reported: u64,
    /// Probes of the reported trains; how many of them were lost, and came before one that was sent earlier.
    pub probes: u64,
    pub lost: u64,
    pub reordered: u64,
    /// Probes sent [IP bytes].
    pub bytes: u64,
    /// The small ones, at most [`MAX_DELAY_SAMPLES`].
    pub small: Vec<DelaySample>,
}

impl Outcome {
    /// Nothing was learnt.
    pub fn none(why: Reason) -> Outcome {
        let (capacity, available) = (Figure::none(why), Figure::none(why));
        Outcome {
            capacity,
            available,
            trains: 0,
            reported: 0,
            probes: 0,
            lost: 0,
            reordered: 0,
            bytes: 0,
            small: Vec::new(),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.capacity.write(&mut out);
        self.available.write(&mut out);
        for number in [self.trains, self.reported, self.probes, self.lost, self.reordered, self.bytes] {
            push_varint(&mut out, number);
        }
        let (mut sent, mut delay) = (0u64, 0i64);
        for &(at, late) in self.small.iter().take(MAX_DELAY_SAMPLES) {
            push_varint(&mut out, at.wrapping_sub(sent));
            push_varint(&mut out, zigzag(late.wrapping_sub(delay)));
            (sent, delay) = (at, late);
        }
        out
    }

    pub fn decode(body: &[u8]) -> Option<Outcome> {
        whole(body, |r| {
            let (capacity, available) = (Figure::read(r)?, Figure::read(r)?);
            let (trains, reported, probes) = (r.varint()?, r.varint()?, r.varint()?);
            let (lost, reordered, bytes) = (r.varint()?, r.varint()?, r.varint()?);
            let mut small: Vec<DelaySample> = Vec::new();
            let (mut sent, mut delay) = (0u64, 0i64);
            while !r.is_empty() && small.len() < MAX_DELAY_SAMPLES {
                sent = sent.wrapping_add(r.varint()?);
                delay = delay.wrapping_add(unzigzag(r.varint()?));
                if sent > LATEST.0 || delay.unsigned_abs() > LATEST.0 {
                    return None;
                }
                small.push((sent, delay));
            }
            let sound = lost <= probes && reported <= trains;
            let outcome = Outcome { capacity, available, trains, reported, probes, lost, reordered, bytes, small };
            sound.then_some(outcome)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::BODY;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn outcomes_come_back_and_fit_a_datagram() {
        let mut outcome = Outcome::none(Reason::FeedbackLost);
        assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome.clone()));
        outcome.capacity =
            Figure { value: Some(5e6), low: 4.9e6, high: 5.1e6, why: None, discipline: Discipline::Fair };
        outcome.small = (0..MAX_DELAY_SAMPLES as u64)
            .map(|i| (LATEST.0 / 2 + i * 1_000_000_007, i64::MIN / 3 + i as i64))
            .collect();
        (outcome.trains, outcome.reported, outcome.probes, outcome.lost) = (9, 8, 700, 6);
        assert!(outcome.encode().len() <= BODY);
        assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome));
    }

    #[test]
    fn what_an_estimate_gives_is_understood_by_the_other_end() {
        // wider than its value: half an interval that reached below nothing was refused there, again and again
        let figure = Figure::of(&Estimate::of(30e6, -20e6, 80e6, 1), None);
        let outcome = Outcome { capacity: figure, ..Outcome::none(Reason::TooFew) };
        assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome));
    }

    proptest! {
        #[test]
        fn random_outcomes_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Outcome::decode(&body);
        }
    }
}
