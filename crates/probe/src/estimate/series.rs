//! What a stream of probes says of the cross traffic: the balance of a busy queue.
//!
//! Symbols: C = capacity, L = size of a probe, t_i = departure from the sender, r_i = arrival at the receiver, d_i = r_i - t_i,
//! base = the smallest d. A probe that arrives at the bottleneck before the one before it has left (t_i + base - L/C <=
//! r_{i-1}) is *joined* to it: the line was busy from the one's departure to the other's, so that what it carried besides
//! the probe was cross traffic, and that had come in between the two probes:
//!
//! x_i = C (r_i - r_{i-1}) - L, during t_i - t_{i-1}.
//!
//! This is exact for any first-come-first-served queue and any traffic; nothing is assumed of its pattern. Summed over
//! joined probes, A = C - X/T. If the queue is as long at the end as at the beginning, C cancels out: A is then what the
//! probes themselves got, and holds even where the tight link is not the narrow one.
//!
//! A probe that is not joined bounds its cross traffic only: at least what it waited for itself, C (d_i - base), at most what
//! the line could have carried.

use super::TrainSeen;

/// Between two probes whose stamps are right; times [s], amounts [bit].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// From the first one's departure from the sender [s], by its clock.
    pub from: f64,
    /// To the second one's [s].
    pub time: f64,
    /// Cross traffic that came in between: the least.
    pub low: f64,
    /// And the most. The same as `low` if joined.
    pub high: f64,
    /// Whether the line was busy all the time.
    pub joined: bool,
    /// For how long it was perhaps idle [s].
    pub hidden: f64,
    /// The second probe's time in the queue before its own service [s].
    pub wait: f64,
    /// Probes received in it: the second one, and those of its batch [bit].
    pub bits: f64,
    /// Packets lost in between.
    pub lost: u32,
}

/// How many probes about one that is not joined say how often the line was busy.
const NEAR: usize = 6;

/// The cross traffic of each segment [bit]. Where probes are not joined each samples the line for itself: the share that had
/// to wait is the load of the cross traffic nearby, as Poisson arrivals would see it. `blur` [s] is what a stamp may be
/// late; if it hides the wait behind a packet, the mean rate stands in.
pub fn filled(segments: &[Segment], capacity: f64, mean: f64, blur: f64) -> Vec<f64> {
    let open: Vec<usize> = (0..segments.len()).filter(|&i| !segments[i].joined).collect();
    let service = f64::from(super::LARGE) * 8.0 / capacity;
    let busy: Vec<bool> = open.iter().map(|&i| segments[i].wait > NOTHING + 0.003 * service).collect();
    let mut bits: Vec<f64> = segments.iter().map(|s| s.low).collect();
    for (k, &i) in open.iter().enumerate() {
        let s = &segments[i];
        let near = k.saturating_sub(NEAR)..(k + NEAR + 1).min(open.len());
        let share = busy[near.clone()].iter().filter(|&&busy| busy).count() as f64 / near.len() as f64;
        let rate = if blur > service { mean } else { share * capacity };
        let low = (s.low - capacity * blur).max(0.0);
        bits[i] = (rate * s.time).clamp(low, s.high.max(low));
    }
    bits
}

/// A wait shorter than this is the stamps' noise [s].
const NOTHING: f64 = 20e-6;

/// How late stamps may be because the receiving host gathers packets [s]: the line time of a usual batch; none if most
/// packets come alone.
pub fn blur<'a>(trains: impl Iterator<Item = &'a TrainSeen>, capacity: f64) -> f64 {
    let packets = trains.flat_map(|train| &train.packets).filter(|p| p.received.is_some());
    let batches: Vec<f64> = packets.map(|p| f64::from(p.batch.of)).collect();
    match super::stat::median(&batches) {
        Some(of) if of > 1.0 => of * f64::from(super::LARGE) * 8.0 / capacity,
        _ => 0.0,
    }
}

/// The smallest delay [ns] among packets whose stamps are their own.
pub fn base<'a>(trains: impl Iterator<Item = &'a TrainSeen>) -> Option<i64> {
    trains.flat_map(|train| train.packets.iter().filter_map(super::Seen::own_delay)).min()
}

/// How full the queue must have been, as a share of the longest wait seen, that a loss there was an overflow: a packet that
/// found no place did not use the line, one lost elsewhere did.
const FULL: f64 = 0.6;

/// The segments of trains in the order of their numbers; none spans a train that was not reported. `capacity` in bit/s,
/// `base` in ns.
pub fn segments<'a>(trains: impl Iterator<Item = &'a TrainSeen> + Clone, capacity: f64, base: i64) -> Vec<Segment> {
    let waits = trains.clone().flat_map(|t| t.packets.iter().filter_map(super::Seen::own_delay));
    let longest = waits.max().map_or(0.0, |d| (d - base) as f64 / 1e9);
    let mut segments = Vec::new();
    let mut walk: Option<Walk> = None;
    let mut next_id = None;
    for train in trains {
        if next_id.is_some_and(|id| id != train.id) {
            walk = None;
        }
        next_id = Some(train.id + 1);
        for packet in &train.packets {
            let bits = f64::from(packet.size) * 8.0;
            let service = bits / capacity;
            let sent = packet.sent.0 as f64 / 1e9;
            let arrives = (packet.sent.0 as i64 + base) as f64 / 1e9 - service;
            if let Some(walk) = &mut walk {
                let Some(received) = packet.received else {
                    walk.lost += 1;
                    walk.lost_bits += bits;
                    continue;
                };
                // a twentieth of a service time that was perhaps idle is less than the stamps' own error
                let hidden = arrives - walk.busy_until;
                if hidden > 0.05 * service {
                    walk.joined = false;
                    walk.hidden += hidden;
                }
                walk.bits += bits;
                if !packet.batch.is_last() {
                    walk.busy_until = walk.busy_until.max(arrives) + service;
                    continue;
                }
                let received = received.0 as f64 / 1e9;
                let wait = (received - arrives - service).max(0.0);
                let overflow = walk.lost > 0 && wait.max(walk.wait) > FULL * longest;
                let carried = walk.bits + if overflow { 0.0 } else { walk.lost_bits };
                let most = (capacity * (received - walk.received) - carried).max(0.0);
                let exact = capacity * (received - walk.received) - carried;
                let low = if walk.joined { exact } else { (capacity * wait).min(most) };
                segments.push(Segment {
                    from: walk.sent,
                    time: sent - walk.sent,
                    low,
                    high: if walk.joined { exact } else { most },
                    joined: walk.joined,
                    hidden: walk.hidden,
                    wait,
                    bits: walk.bits,
                    lost: walk.lost,
                });
            }
            if let (Some(received), true) = (packet.received, packet.batch.is_last()) {
                let received = received.0 as f64 / 1e9;
                walk = Some(Walk {
                    sent,
                    received,
                    busy_until: received,
                    wait: (received - arrives - service).max(0.0),
                    bits: 0.0,
                    lost: 0,
                    lost_bits: 0.0,
                    joined: true,
                    hidden: 0.0,
                });
            }
        }
    }
    segments
}

/// Since the last probe whose stamp is right.
struct Walk {
    sent: f64,
    received: f64,
    /// Until when the line is busy at least, on the receiver's clock [s].
    busy_until: f64,
    wait: f64,
    /// Received since.
    bits: f64,
    lost: u32,
    lost_bits: f64,
    joined: bool,
    hidden: f64,
}
