//! Whether the sending host itself spaced the packets of trains that were to leave at once: it hands each over so long after the one
//! before that the line is idle in between, and they come as they left. What such trains show is the host's rate; the line carries
//! that at least.
//!
//! A packet that waited in the host's own queue counts as sent when it was handed over: then the device spaces them, and is what is
//! sought.

use super::TrainSeen;
use super::dispersion::{until_stall, whole_batches};
use super::gather::at_once;
use super::stat::median;

/// A train came no longer than it left, but for this share.
const LONGER: f64 = 0.05;
/// And of the time in which it came no more than this share is what single gaps were longer by than they left, which is what stamps
/// scatter: a line that holds packets may keep the host waiting too, where both are one machine.
const HELD: f64 = 0.125;
/// Of fewer gaps nothing is said.
const LEAST: usize = 6;

/// How many times as long a train was when it came, for what share of that it was held, and what it carried [bit/s].
#[derive(Clone, Copy, Debug)]
struct Train {
    longer: f64,
    held: f64,
    carried: f64,
}

/// What trains that were to leave at once say of it.
#[derive(Clone, Debug, Default)]
pub struct HandOver {
    /// Of each train, once for each of its gaps: a stamp that is late makes little of a long one.
    trains: Vec<Train>,
}

impl HandOver {
    /// Adds a train that was to leave at once.
    pub fn add(&mut self, train: &TrainSeen) {
        let train = at_once(train);
        let end = whole_batches(&train).min(until_stall(&train));
        let marks = (0..end).filter_map(|k| {
            let packet = &train.packets[k];
            packet.own_delay()?;
            Some((k, packet.sent.0 as f64, packet.received?.0 as f64))
        });
        let marks: Vec<_> = marks.collect();
        let (mut gaps, mut held) = (0, 0.0);
        for pair in marks.windows(2) {
            let (left, came) = (pair[1].1 - pair[0].1, pair[1].2 - pair[0].2);
            gaps += 1;
            held += f64::max(came - left, 0.0);
        }
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else { return };
        let (left, came) = (last.1 - first.1, last.2 - first.2);
        let carried = train.packets[first.0 + 1..=last.0].iter().filter(|p| p.received.is_some());
        let bits: f64 = carried.map(|p| f64::from(p.size) * 8.0).sum();
        if came > 0.0 {
            let longer = if left > 0.0 { came / left } else { f64::INFINITY };
            self.trains.extend(vec![Train { longer, held: held / came, carried: bits / came * 1e9 }; gaps]);
        }
    }

    /// What the line carried of the host's rate [bit/s], where that is what was found.
    pub fn carried(&self) -> Option<f64> {
        let usual = |of: fn(&Train) -> f64| median(&self.trains.iter().map(of).collect::<Vec<_>>());
        let is = usual(|train| train.longer)? <= 1.0 + LONGER && usual(|train| train.held)? <= HELD;
        usual(|train| train.carried).filter(|_| is && self.trains.len() >= LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Batch;
    use super::super::testing::train;
    use super::*;
    use pathcast_base::Stream;

    /// Trains of so many packets that a host hands over every `host` [ns] (a third more or less, now and then `held` more), over a line
    /// that takes `line` for each; stamps of arrivals scatter by `scatter`.
    fn sent(count: usize, host: f64, held: f64, line: f64, scatter: f64) -> Vec<TrainSeen> {
        let mut stream = Stream::new(7, "handover");
        let mut one = |id| {
            let (mut at, mut free) = (1e6, 0.0f64);
            let (mut left, mut came) = (Vec::new(), Vec::new());
            for k in 0..count {
                left.push(at as u64);
                free = free.max(at) + line;
                came.push(Some((free + 1e6 + scatter * stream.between(0.0, 1.0)) as u64));
                at += host * stream.between(0.67, 1.33) + if k % 40 == 20 { held } else { 0.0 };
            }
            train(id, 1400, &left, &came)
        };
        (0..5).map(&mut one).collect()
    }

    fn found(trains: &[TrainSeen]) -> Option<f64> {
        let mut hand_over = HandOver::default();
        trains.iter().for_each(|train| hand_over.add(train));
        hand_over.carried()
    }

    #[test]
    fn a_host_that_is_slower_than_the_line_is_told_from_one_that_is_not() {
        // 2.8 Gbit/s on 10 Gbit/s, even where stamps scatter
        for (count, scatter) in [(5, 0.0), (125, 0.0), (125, 1000.0)] {
            let carried = found(&sent(count, 4000.0, 0.0, 1120.0, scatter)).unwrap();
            assert!((carried / 2.8e9 - 1.0).abs() < 0.1, "{count} {scatter}: {carried}");
        }
        // 100 Mbit/s of a host on 1 Gbit/s
        assert!(found(&sent(13, 112e3, 0.0, 11_200.0, 2000.0)).is_some());
        // the line takes longer than the host, by a little too, with stamps that scatter, and with a host that is held up so that the
        // queue runs empty
        for (line, held, scatter) in [
            (5600.0, 0.0, 0.0),
            (4800.0, 0.0, 0.0),
            (5600.0, 0.0, 2000.0),
            (5600.0, 120e3, 0.0),
            (11_200.0, 250e3, 2000.0),
            (2.24e6, 0.0, 0.0),
        ] {
            assert_eq!(found(&sent(125, 4000.0, held, line, scatter)), None, "{line} {held} {scatter}");
            assert_eq!(found(&sent(5, 4000.0, held, line, 0.0)), None, "{line}, five");
        }
    }

    /// A shaper whose timer runs on the sender's processor: what it holds keeps the sender waiting for as long, and both are even.
    #[test]
    fn a_line_that_keeps_its_host_waiting_is_no_slow_host() {
        for (free, held) in [(1, 37_000), (7, 36_000)] {
            let (mut left, mut came) = (vec![0u64], vec![Some(1_000_000u64)]);
            for k in 1..125u64 {
                let (before, last) = (left[left.len() - 1], came[came.len() - 1].unwrap_or(0));
                // one is held; the one behind it left as much later
                let (gap, takes) = match k % (free + 2) {
                    0 => (9000, held),
                    1 => (held + 4000, 13_000),
                    _ => (9000, 9000),
                };
                left.push(before + gap);
                came.push(Some(last + takes));
            }
            let seen = train(0, 1400, &left, &came);
            assert!(came[124].unwrap() - 1_000_000 <= left[124] * 21 / 20);
            assert_eq!(found(&[seen]), None, "{free}");
        }
    }

    #[test]
    fn packets_that_left_at_once_were_not_spaced_by_their_host() {
        assert_eq!(found(&sent(20, 0.0, 0.0, 1120.0, 0.0)), None);
        assert_eq!(found(&[]), None);
        assert_eq!(found(&sent(3, 4000.0, 0.0, 1120.0, 0.0)[..2]), None, "too few");
    }

    /// The receiving host takes what has come every 40 us: the stamps are its own then.
    #[test]
    fn packets_that_the_receiver_gathers_are_judged_by_whole_batches() {
        for (line, slow) in [(1120.0, true), (8000.0, false)] {
            let mut trains = sent(125, 4000.0, 0.0, line, 0.0);
            for train in &mut trains {
                let polled = |k: usize| train.packets[k].received.unwrap().0.div_ceil(40_000) * 40_000;
                let polls: Vec<u64> = (0..train.packets.len()).map(polled).collect();
                for (k, packet) in train.packets.iter_mut().enumerate() {
                    let first = polls.partition_point(|&poll| poll < polls[k]);
                    let of = polls.partition_point(|&poll| poll <= polls[k]) - first;
                    packet.received = Some(pathcast_base::Nanos(polls[k]));
                    packet.batch = Batch { index: (k - first) as u32, of: of as u32 };
                }
            }
            assert_eq!(found(&trains).is_some(), slow, "{line}");
        }
    }
}
