//! Whether what came bears C out: whole trains, and the probes of the ride.
//!
//! A way whose delay falls while the trains go by lets packets come closer than the line does, all trains alike; and where they come at
//! fixed moments a gap is such a moment's, not the line's. The ride goes on for longer: of its probes some come as close as C allows, unless
//! others' packets came between nearly all of them.

use super::super::Estimate;
use super::super::series::{self, Segment};
use super::balance::{Balance, CROSS};
use super::{PACKET, Ride, WhyNot};

/// A probe comes as close as C allows, but for this share of L/C; of so many.
const CLOSE: f64 = 0.05;
const ENOUGH: usize = 60;
/// Others' packets are full-sized at the most: of what they leave so many probes have nobody before them at the least. Of so many less than a
/// part of this share is none.
const LEFT: f64 = 0.6;
const PART: f64 = 0.2;

/// A whole train shows more than C by so much at least.
const MORE: f64 = 1.02;
/// No train shows more than this part of C: what came at once was taken for the line's rate.
const ABSURD: f64 = 4.0;
/// Packets of a train that shows a rate.
const TRAIN: usize = 5;

/// Whether hardly a probe came as close as C allows [bit/s], though others left most of it.
fn is_apart(segments: &[Segment], available: f64, c: f64) -> bool {
    if available < LEFT * c {
        return false;
    }
    let single = || segments.iter().filter(|s| s.joined && s.lost == 0 && s.bits <= PACKET);
    let close = single().filter(|s| s.low <= CLOSE * PACKET).count() as f64;
    let alone = 1.0 - (c / available - 1.0).max(0.0) * PACKET / CROSS;
    single().count() >= ENOUGH && close < PART * alone * single().count() as f64
}

impl Ride {
    /// The most that a whole train showed, if it lasted so long that stamps do not matter [bit/s].
    fn shown(&self) -> Option<f64> {
        let trains = self.trains.range(..self.first).map(|(_, train)| train);
        let late = series::NOTHING + self.blur().max(self.noise);
        let rate = |train: &super::TrainSeen| {
            let came: Vec<u64> = train.packets.iter().skip(1).filter_map(|p| Some(p.received?.0)).collect();
            let (first, last) = (came.iter().min()?, came.iter().max()?);
            let time = (last - first) as f64 / 1e9;
            (came.len() >= TRAIN).then(|| (came.len() - 1) as f64 * PACKET / (time + late))
        };
        trains.filter_map(rate).reduce(f64::max)
    }

    /// The capacity, as far as what came bears it out.
    pub(super) fn borne_out(&self, found: Estimate) -> Estimate {
        let Some(value) = found.value_bps.filter(|_| self.c > 0.0) else { return found };
        let shown = self.shown();
        let ambiguous = found.why_not.or(Some(WhyNot::Ambiguous));
        if let Some(shown) = shown.filter(|shown| ABSURD * shown < value) {
            return Estimate { low_bps: found.low_bps.min(shown), why_not: ambiguous, ..found };
        }
        let found = match shown {
            Some(shown) if shown > MORE * found.high_bps => Estimate { high_bps: shown, ..found },
            _ => found,
        };
        let (segments, losses) = self.segments();
        let from = self.trains.get(&self.first).map_or(0.0, |train| train.packets[0].sent.as_secs_f64());
        let ride: Vec<Segment> = segments.iter().filter(|s| s.from >= from).copied().collect();
        let apart = self.every == 0.0
            && self.balance(&segments, losses).is_some_and(|b: Balance| is_apart(&ride, b.available, self.c));
        if !apart {
            return found;
        }
        let least = self.judge(self.around()).low_bps;
        Estimate { low_bps: found.low_bps.min(least), why_not: ambiguous, ..found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 Mbit/s by the trains, of which the ride got 4.
    #[test]
    fn a_line_on_which_no_probe_comes_as_close_as_its_rate_allows_has_another() {
        let of = |between: &dyn Fn(usize) -> f64| {
            let segment = |k: usize| Segment {
                from: k as f64,
                time: 2.8e-3,
                low: between(k),
                high: between(k),
                joined: true,
                hidden: 0.0,
                wait: 0.0,
                before: 0.0,
                bits: PACKET,
                lost: 0,
                unsure: 0.0,
            };
            is_apart(&(0..80).map(segment).collect::<Vec<_>>(), 4e6, 5e6)
        };
        assert!(of(&|_| PACKET / 4.0), "evenly slower");
        assert!(!of(&|k| if k % 4 == 0 { PACKET } else { 0.0 }), "a packet of others now and then");
        assert!(!is_apart(&[], 4e6, 5e6));
    }
}
