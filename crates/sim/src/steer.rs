//! pathcast's rule for what a subflow is given (`pathcast_session::steer`), looked at as often as over real sockets.

use pathcast_base::Nanos;
use pathcast_scenario::Join;
use pathcast_session::steer::{Held, SubflowSeen, Task, Verdict, is_coupled};

use crate::conn::{ANY, ENDLESS};
use crate::observe::Observer;
use crate::sim::{Plan, Sim, Sub};
use crate::tcp::MAX_RETRIES;

/// Between two looks [ns].
pub(crate) const TICK: u64 = 10_000_000;
/// Until a subflow is asked for again, as over real sockets; doubles each time that it ends before it was up for the longest, up to …
const PAUSE: u64 = 5_000_000_000;
/// … this [ns].
const LONGEST_PAUSE: u64 = 60_000_000_000;

impl<O: Observer> Sim<O> {
    /// The subflows of a connection are looked at.
    pub(crate) fn steer(&mut self, index: u32, generation: u16) {
        let Sim { conns, subs, senders, config, now, .. } = self;
        let conn = &mut conns[index as usize];
        if !conn.live || conn.generation != generation {
            return;
        }
        let open: Vec<u32> = conn.subs().iter().copied().filter(|&flow| subs[flow as usize].open).collect();
        let mss = u64::from(conn.send.mss);
        let seen: Vec<SubflowSeen> = open
            .iter()
            .map(|&flow| {
                let sender = &senders[flow as usize];
                SubflowSeen {
                    id: flow,
                    srtt: Nanos(u64::from(sender.rtt.srtt_us()) * 1000),
                    min_rtt: Nanos(u64::from(sender.rtt.min_us) * 1000),
                    window: u64::from(sender.flow.cwnd) * mss,
                    pace: sender.pacing_rate(),
                    unsent: sender.queue.len() as u64 * mss,
                    out: u64::from(sender.out()) * mss,
                    acked: sender.una * mss,
                    again: sender.stats.retransmits,
                    timeouts: sender.backoff(),
                }
            })
            .collect();
        let left = if conn.send.end == ENDLESS { u64::MAX / 4 } else { (conn.send.end - conn.send.next) * mss };
        let room = (config.receive_buffer / 4).min(config.steered_room());
        let open_bytes = (conn.send.next - conn.send.una.min(conn.send.next)) * mss;
        let coupled = open.first().is_some_and(|&flow| is_coupled(senders[flow as usize].control.info().name));
        let waits = conn.send.written.min(conn.send.end).saturating_sub(conn.send.next) * mss;
        let verdicts = conn.steer.look(Nanos(*now), Task { left, waits, open: open_bytes, room, coupled }, &seen);
        conn.trial = conn.steer.trial().map_or(u64::MAX, |bytes| conn.send.next + bytes / mss);
        let mut close = Vec::new();
        for (&flow, verdict) in open.iter().zip(&verdicts) {
            senders[flow as usize].held = *verdict != Verdict::Free;
            if let Verdict::Close(why) = *verdict {
                close.push((flow, why));
            }
        }
        let at = *now + TICK;
        for (flow, why) in close {
            self.leave(index, flow);
            if why == Held::Silent {
                self.rest(flow);
            }
        }
        self.plan(at, Plan::Steer(index, generation));
        self.push(index);
    }

    /// A subflow is closed: all that is not acknowledged is given out anew (`__mptcp_retransmit_pending_data`).
    fn leave(&mut self, index: u32, flow: u32) {
        let conn = &mut self.conns[index as usize];
        self.senders[flow as usize].give_away(|_, _| {});
        self.subs[flow as usize].open = false;
        self.subs[flow as usize].tries = MAX_RETRIES + 1;
        self.senders[flow as usize].release(Some(&mut conn.group));
        self.senders[flow as usize].grouped = false;
        conn.send.again.clear();
        conn.send.again.extend((conn.send.una..conn.send.next).map(|dsn| (dsn, ANY)));
    }
    /// One that pathcast has lost, or could not make, is asked for again after its pause.
    pub(crate) fn rest(&mut self, flow: u32) {
        let sub = &mut self.subs[flow as usize];
        let conn = &self.conns[sub.conn as usize];
        if !conn.steered || conn.closing {
            return;
        }
        let long = sub.opened > 0 && self.now - sub.opened >= LONGEST_PAUSE;
        let pause = if sub.pause == 0 || long { PAUSE } else { sub.pause };
        sub.pause = LONGEST_PAUSE.min(2 * pause);
        let (at, generation) = (self.now + pause, sub.generation);
        self.plan(at, Plan::Join(flow, generation));
    }

    /// Another subflow over the same path begins in the place of one that is gone.
    pub(crate) fn join_again(&mut self, flow: u32, generation: u16) {
        let sub = &self.subs[flow as usize];
        if !sub.live || sub.generation != generation || self.conns[sub.conn as usize].closing {
            return;
        }
        let &Sub { conn, path, forward, back, sender_opens, joined, pause, .. } = sub;
        self.receivers[flow as usize].reset(&self.config);
        self.receivers[flow as usize].offered = self.conns[conn as usize].receive.buffer.first();
        self.subs[flow as usize] = Sub {
            conn,
            generation: generation.wrapping_add(1), // what is still on its way is the old one's
            live: true,
            path,
            forward,
            back,
            sender_opens,
            joins: self.config.join == Join::Handshake,
            joined,
            pause,
            ..Sub::default()
        };
        self.open(flow);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use pathcast_scenario::{End, Scenario};

    use super::*;
    use crate::conn::Owner;
    use crate::handshake::Wanted;
    use crate::observe::Nobody;

    fn joined(steered: bool) -> Sim<Nobody> {
        let link = |name| {
            format!(
                "[[link]]\nname = \"{name}\"\na = \"client\"\nb = \"server\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
                 [[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]\n"
            )
        };
        let text = link("a") + &link("b") + "[[flow]]\nname = \"f\"\npaths = [\"a\"]\nbytes = \"1KB\"\n";
        let mut sim = Sim::new(Scenario::parse(&text, &[]).unwrap(), Nobody).unwrap();
        let (owner, paths, multipath, to, control, bytes) = (Owner::Nobody, vec![0, 1], true, End::Server, 0, None);
        sim.connect(&Wanted { owner, paths, multipath, to, control, bytes, steered });
        sim.run(1_000_000_000, u64::MAX, |sim| sim.subs.len() == 2 && sim.subs[1].open);
        sim
    }

    /// Asks for the second subflow again: how long after its end that is planned [s].
    fn pause(sim: &mut Sim<Nobody>) -> Option<u64> {
        sim.plans.retain(|Reverse((.., plan))| !matches!(plan, Plan::Join(..)));
        sim.rest(1);
        let join = sim.plans.iter().find(|Reverse((.., plan))| matches!(plan, Plan::Join(1, _)));
        join.map(|Reverse((at, ..))| (at - sim.now) / 1_000_000_000)
    }

    #[test]
    fn pauses_double_unless_it_was_up_for_the_longest() {
        let mut sim = joined(true);
        assert_eq!([(); 6].map(|()| pause(&mut sim)), [5, 10, 20, 40, 60, 60].map(Some));
        sim.now += LONGEST_PAUSE;
        assert_eq!([(); 1].map(|()| pause(&mut sim)), [Some(5)]);
        assert_eq!(pause(&mut joined(false)), None, "the kernel's own does not ask again");
    }

    #[test]
    fn one_in_the_place_of_another_begins_as_a_backup_and_counts_on() {
        let mut sim = joined(true);
        sim.run(2_000_000_000, u64::MAX, |_| false);
        for flow in [0, 1] {
            let sent = sim.senders[flow as usize].total().sent;
            sim.leave(0, flow);
            let generation = sim.subs[flow as usize].generation;
            sim.join_again(flow, generation);
            let until = sim.now + 1_000_000_000;
            sim.run(until, u64::MAX, |sim| sim.subs[flow as usize].open);
            let sender = &sim.senders[flow as usize];
            assert!(sim.subs[flow as usize].open && sender.held, "{flow}");
            assert_eq!((sender.stats.sent, sender.total().sent), (0, sent), "{flow}");
            sim.run(until + 1_000_000_000, u64::MAX, |_| false);
            assert_eq!(sim.plans.iter().filter(|Reverse((.., plan))| matches!(plan, Plan::Steer(..))).count(), 1);
        }
    }
}
