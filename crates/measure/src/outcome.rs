//! What one direction of a path has come to, as its sender knows it, and how the far end tells it.

use pathcast_base::Nanos;
pub(super) use pathcast_estimate::WhyNot as Reason;
use pathcast_estimate::knowledge::Loss;
use pathcast_estimate::shared::pulses::{PARTS, SLOTS};
use pathcast_estimate::shared::{Bin, Response};
use pathcast_estimate::{Knowledge, Value};
use pathcast_session::codec::{LATEST, Reader, push_varint, unzigzag, whole, zigzag};

use super::wire::BODY;

/// A value as it goes over the wire: which of its numbers there are, the numbers, and the reason's number or 0.
fn write(value: &Value, out: &mut Vec<u8>) {
    let numbers =
        [value.value, Some(value.low).filter(|low| low.is_finite()), Some(value.high).filter(|h| h.is_finite())];
    out.push((0..3).filter(|&i| numbers[i].is_some()).map(|i| 1 << i).sum());
    out.push(value.why.map_or(0, |why| why as u8));
    numbers.iter().flatten().for_each(|number| out.extend(number.to_bits().to_be_bytes()));
}

fn read(r: &mut Reader<'_>) -> Option<Value> {
    let (which, code) = (r.u8()?, r.u8()?);
    let why = Reason::of(code);
    if which > 7 || (code == 0) != why.is_none() || (which & 1 == 0 && code == 0) {
        return None;
    }
    let mut number = |bit: u8| if which & bit == 0 { Some(None) } else { r.f64().map(Some) };
    let (value, low, high) = (number(1)?, number(2)?, number(4)?);
    // a number that is none, or less than nothing, is nobody's estimate
    let known = [low, value, high].into_iter().flatten();
    let sound = known.clone().all(|n| n >= 0.0 && n.is_finite()) && known.is_sorted();
    sound.then_some(Value { value, low: low.unwrap_or(f64::NEG_INFINITY), high: high.unwrap_or(f64::INFINITY), why })
}

/// A small packet: when it left, by the sender's clock [ns], and its delay with the clocks' offset in it [ns].
pub(super) type DelaySample = (u64, i64);

/// So many delays are told at most.
pub(super) const MAX_DELAY_SAMPLES: usize = 60;

/// What one direction has come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Its losses are those among the probes of the reported trains.
    pub known: Knowledge,
    /// Trains sent, and of how many a report came.
    pub trains: u64,
    pub reported: u64,
    /// Probes that came before one that was sent earlier.
    pub reordered: u64,
    /// Probes sent [IP bytes].
    pub bytes: u64,
    /// What became of pulses.
    pub response: Option<Response>,
    /// The small ones, at most [`MAX_DELAY_SAMPLES`].
    pub small: Vec<DelaySample>,
}

/// So many bins of a response are told at most, and as fit: one takes no more than this [byte].
const BINS: usize = SLOTS * PARTS;
const BIN: usize = 20;

/// Whether there is one, and then all that follows is of its bins.
fn write_response(response: Option<&Response>, out: &mut Vec<u8>) {
    out.push(response.is_some().into());
    let Some(of) = response else { return };
    for number in [of.start.0, of.bin.0, of.size.into()] {
        push_varint(out, number);
    }
    let mut last = 0;
    for bin in of.bins.iter().take(BINS) {
        if out.len() + BIN > BODY {
            break;
        }
        push_varint(out, bin.sent.into());
        if bin.sent > 0 {
            push_varint(out, bin.lost.into());
        }
        if bin.sent > bin.lost {
            push_varint(out, zigzag(bin.delay_us.wrapping_sub(last)));
            last = bin.delay_us;
        }
    }
}

fn read_response(r: &mut Reader<'_>) -> Option<Option<Response>> {
    if !r.flag()? {
        return Some(None);
    }
    let (start, bin, size) = (Nanos(r.varint()?), Nanos(r.varint()?), u16::try_from(r.varint()?).ok()?);
    if start > LATEST || bin > LATEST || bin == Nanos::ZERO {
        return None;
    }
    let (mut bins, mut last) = (Vec::new(), 0i64);
    while !r.is_empty() && bins.len() < BINS {
        let sent = u32::try_from(r.varint()?).ok()?;
        let lost = if sent > 0 { u32::try_from(r.varint()?).ok()? } else { 0 };
        if lost > sent {
            return None;
        }
        if sent > lost {
            last = last.wrapping_add(unzigzag(r.varint()?));
            if last.unsigned_abs() > LATEST.0 {
                return None;
            }
        }
        bins.push(Bin { sent, lost, delay_us: if sent > lost { last } else { 0 } });
    }
    Some(Some(Response { start, bin, size, bins }))
}

impl Outcome {
    /// Nothing was learnt.
    pub fn none(why: Reason) -> Outcome {
        let mut known = Knowledge::default();
        known.values_mut().into_iter().for_each(|value| *value = Value::none(why));
        Outcome { known, trains: 0, reported: 0, reordered: 0, bytes: 0, response: None, small: Vec::new() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut known = self.known;
        known.values_mut().iter().for_each(|value| write(value, &mut out));
        let Loss { lost, packets, .. } = known.loss;
        for number in [self.trains, self.reported, packets, lost, self.reordered, self.bytes] {
            push_varint(&mut out, number);
        }
        write_response(self.response.as_ref(), &mut out);
        if self.response.is_some() {
            return out;
        }
        let (mut sent, mut delay) = (0u64, 0i64);
        for &(at, late) in self.small.iter().take(MAX_DELAY_SAMPLES) {
            let before = out.len();
            push_varint(&mut out, at.wrapping_sub(sent));
            push_varint(&mut out, zigzag(late.wrapping_sub(delay)));
            if out.len() > BODY {
                out.truncate(before);
                break;
            }
            (sent, delay) = (at, late);
        }
        out
    }

    pub fn decode(body: &[u8]) -> Option<Outcome> {
        if body.len() > BODY {
            return None;
        }
        whole(body, |r| {
            let mut known = Knowledge::default();
            for value in known.values_mut() {
                *value = read(r)?;
            }
            let (trains, reported, packets) = (r.varint()?, r.varint()?, r.varint()?);
            let (lost, reordered, bytes) = (r.varint()?, r.varint()?, r.varint()?);
            let response = read_response(r)?;
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
            let sound = lost <= packets && reported <= trains;
            (known.loss.lost, known.loss.packets) = (lost, packets);
            let outcome = Outcome { known, trains, reported, reordered, bytes, response, small };
            sound.then_some(outcome)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathcast_estimate::Estimate;
    use proptest::prelude::*;

    #[test]
    fn outcomes_come_back_and_fit_a_datagram() {
        let mut outcome = Outcome::none(Reason::FeedbackLost);
        assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome.clone()));
        outcome.known.values_mut().into_iter().for_each(|value| *value = Value::of(5e6, 4.9e6, 5.1e6));
        outcome.small = (0..MAX_DELAY_SAMPLES as u64)
            .map(|i| (LATEST.0 / 2 + i * 1_000_000_007, i64::MIN / 3 + i as i64))
            .collect();
        (outcome.trains, outcome.reported) = (9, 8);
        (outcome.known.loss.packets, outcome.known.loss.lost) = (700, 6);
        assert!(outcome.encode().len() <= BODY);
        assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome.clone()));
        // delays that differ much take more room than there is: the last ones stay here
        outcome.small = (0..MAX_DELAY_SAMPLES as u64).map(|i| ((i % 2) << 61, (i as i64 % 2) << 61)).collect();
        let told = Outcome::decode(&outcome.encode()).unwrap().small;
        assert!(outcome.encode().len() <= BODY && told.len() > 25 && outcome.small.starts_with(&told));
    }

    #[test]
    fn what_an_estimate_gives_is_understood_by_the_other_end() {
        // wider than its value: half an interval that reached below nothing was refused there, again and again
        let mut outcome = Outcome::none(Reason::TooFew);
        outcome.known.capacity_bps = Value::from(&Estimate::of(30e6, -20e6, 80e6, 1));
        assert_eq!(Outcome::decode(&outcome.encode()), Some(outcome));
    }

    #[test]
    fn a_value_that_is_no_value_is_refused() {
        let told = |value: Value| {
            let mut outcome = Outcome::none(Reason::TooFew);
            outcome.known.queue.depth_s = value;
            Outcome::decode(&outcome.encode()).map(|told| told.known.queue.depth_s)
        };
        for sound in [Value::default(), Value::bare(0.5), Value::at_least(0.5, Reason::BeyondLimit)] {
            assert_eq!(told(sound), Some(sound));
        }
        let of = |value, low, high| Value { value, low, high, why: None };
        for wrong in
            [of(None, 0.0, 1.0), of(Some(-1.0), -1.0, 1.0), of(Some(2.0), 0.0, 1.0), of(Some(f64::NAN), 0.0, 1.0)]
        {
            assert_eq!(told(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_response_comes_back_in_one_datagram() {
        let bin = |k: i64| match k % 5 {
            0 => Bin::default(),
            1 => Bin { sent: 3, lost: 3, delay_us: 0 },
            _ => Bin { sent: 340, lost: 17, delay_us: 4_000_000_000_000 + k * k % 11 * 1000 },
        };
        let bins = (0..BINS as i64).map(bin).collect();
        let response = Response { start: Nanos(1 << 60), bin: Nanos::millis(12), size: 1400, bins };
        let outcome = Outcome { response: Some(response), ..Outcome::none(Reason::NotLookedFor) };
        let body = outcome.encode();
        assert!(body.len() <= BODY, "{}", body.len());
        assert_eq!(Outcome::decode(&body), Some(outcome.clone()));
        // where there is no room the last bins stay here
        let mut large = outcome;
        large.response.as_mut().unwrap().bins.iter_mut().enumerate().for_each(|(k, bin)| {
            *bin = Bin { sent: u32::MAX, lost: 1 << 30, delay_us: (k as i64 % 2) << 60 };
        });
        let told = Outcome::decode(&large.encode()).unwrap().response.unwrap().bins;
        assert!(large.encode().len() <= BODY && told.len() > 20 && told.len() < BINS);
        assert!(large.response.unwrap().bins.starts_with(&told));
    }

    proptest! {
        #[test]
        fn what_was_read_comes_back(
            small in prop::collection::vec((0..=LATEST.0, -(LATEST.0 as i64)..=LATEST.0 as i64), 0..MAX_DELAY_SAMPLES),
            value in 0.0f64..1e12, bound in prop::option::of(0.0f64..1.0), why in 0u8..=14,
        ) {
            let why = Reason::of(why);
            let low = bound.map_or(f64::NEG_INFINITY, |share| value * share);
            let mut outcome = Outcome { small, ..Outcome::none(Reason::TooFew) };
            outcome.known.cross.mean_bps = Value { value: Some(value), low, high: f64::INFINITY, why };
            let read = Outcome::decode(&outcome.encode()).unwrap();
            prop_assert_eq!(read.known, outcome.known);
            prop_assert!(outcome.small.starts_with(&read.small) && (read.small == outcome.small || read.small.len() > 40));
            prop_assert_eq!(Outcome::decode(&read.encode()), Some(read));
        }

        #[test]
        fn random_outcomes_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Outcome::decode(&body);
        }
    }
}
