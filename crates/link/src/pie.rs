//! Proportional integral controller, enhanced: RFC 8033, section 4, with the optional cap of section 5.5 and the
//! de-randomisation of section 5.4. The waiting time is that of the packet that left the queue last, as in section 5.2
//! and in Linux. Names are those of the RFC.
//!
//! Updates are made late, before whatever would see them, each for its own time.

use pathcast_base::Stream;

use crate::Pie;
use crate::codel::Fifo;
use crate::discipline::Waiting;

/// So many bytes may always wait: two packets.
const FEW: u64 = 2 * 1500;
/// Above this probability nothing is marked (section 5.1).
const MARK_ECNTH: f64 = 0.1;

/// What is to become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
    Full,
}

/// One queue under the controller; times in ns.
#[derive(Clone, Debug)]
pub(crate) struct PieQueue<T> {
    pub(crate) params: Pie,
    queue: Fifo<T>,
    next_update: u64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay: u64,
    qdelay_old: u64,
    burst_allowance: u64,
    stream: Stream,
}

impl<T> PieQueue<T> {
    pub(crate) fn new(params: Pie, stream: Stream) -> Self {
        PieQueue {
            queue: Fifo::new(),
            next_update: params.t_update.0,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay: 0,
            qdelay_old: 0,
            burst_allowance: params.max_burst.0,
            stream,
            params,
        }
    }

    pub(crate) fn reseed(&mut self, seed: u64) {
        self.stream.reseed(seed);
    }

    pub(crate) fn set(&mut self, now: u64, params: Pie) {
        self.update_until(now);
        self.next_update = self.next_update.min(now.saturating_add(params.t_update.0));
        self.params = params;
    }

    /// Makes all updates up to `now`, `now` included.
    fn update_until(&mut self, now: u64) {
        while self.next_update <= now {
            let steady = self.drop_prob == 0.0 && self.qdelay == 0 && self.qdelay_old == 0;
            if steady {
                // nothing changes any more until a packet waits
                let step = self.params.t_update.0;
                self.burst_allowance = self.params.max_burst.0;
                self.next_update += ((now - self.next_update) / step).saturating_add(1).saturating_mul(step);
                return;
            }
            self.update();
            self.next_update = self.next_update.saturating_add(self.params.t_update.0);
        }
    }

    fn update(&mut self) {
        let (current, old, target) = (self.qdelay as f64, self.qdelay_old as f64, self.params.target.0 as f64);
        let mut p = (self.params.alpha * (current - target) + self.params.beta * (current - old)) / 1e9;
        p /= match self.drop_prob {
            prob if prob < 0.000_001 => 2048.0,
            prob if prob < 0.000_01 => 512.0,
            prob if prob < 0.000_1 => 128.0,
            prob if prob < 0.001 => 32.0,
            prob if prob < 0.01 => 8.0,
            prob if prob < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.qdelay == 0 && self.qdelay_old == 0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.params.t_update.0);
        let half = self.params.target.0 / 2;
        if self.drop_prob == 0.0 && self.qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.params.max_burst.0;
        }
        self.qdelay_old = self.qdelay;
    }

    fn drop_early(&mut self) -> bool {
        if self.burst_allowance > 0
            || self.qdelay_old < self.params.target.0 / 2 && self.drop_prob < 0.2
            || self.queue.bytes <= FEW
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        let drop = self.accu_prob >= 8.5 || self.stream.chance(self.drop_prob);
        if drop {
            self.accu_prob = 0.0;
        }
        drop
    }

    /// What is to become of a packet that comes at `now` and has to wait.
    pub(crate) fn judge(&mut self, now: u64, ect: bool) -> Verdict {
        self.update_until(now);
        if self.queue.packets.len() >= self.params.limit as usize {
            self.accu_prob = 0.0;
            return Verdict::Full;
        }
        match self.drop_early() {
            false => Verdict::Pass,
            true if ect && self.params.ecn && self.drop_prob <= MARK_ECNTH => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    pub(crate) fn push(&mut self, waiting: Waiting<T>) {
        self.queue.push(waiting);
    }

    pub(crate) fn next(&mut self, now: u64) -> Option<Waiting<T>> {
        self.update_until(now);
        let waiting = self.queue.pop()?;
        self.qdelay = if self.queue.packets.is_empty() { 0 } else { now - waiting.arrived };
        Some(waiting)
    }
}
