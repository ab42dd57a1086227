//! What Multipath TCP sends again by itself, as the kernel does.
//!
//! Linux 6.18 (`mptcp_retransmit_timer`, `mptcp_pm_subflow_chk_stale`). A subflow's timeout repairs that subflow alone. The
//! connection has a timer of its own, which every progress of the stream restarts; it takes as long as the longest timer of
//! the subflows had to run when data was last given out. When it runs out, a subflow that has nothing queued and nothing out
//! sends the first unacknowledged fragment again, a held one only where none has made progress for two expiries; all others are
//! counted as without progress, if no ACK has come over them since. One so counted five times, while another is fine, is stale: the scheduler passes it over until it is heard of, and all
//! that is not acknowledged is given out anew.

use crate::ahead::FRAGMENT;
use crate::conn::ANY;
use crate::observe::Observer;
use crate::sim::{Plan, Sim};

/// Expiries without progress after which a subflow is stale (`net.mptcp.stale_loss_cnt`).
const STALE: u8 = 4;
/// The timer, while no subflow's runs: the least retransmission timeout [ns].
const LEAST: u64 = 200_000_000;

/// How long a subflow has made no progress.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Expiries since it was heard of last, and when that was [ns].
    expiries: u8,
    heard: u64,
    /// It is passed over.
    stale: bool,
}

impl Progress {
    /// An ACK came last at `heard`: whether data may be given to it.
    #[inline]
    pub(crate) fn is_active(&mut self, heard: u64) -> bool {
        if self.stale && heard != self.heard {
            self.stale = false;
        }
        !self.stale
    }

    /// The connection's timer has run out while it held something; whether it may be stale.
    fn expire(&mut self, heard: u64) -> bool {
        if self.expiries == 0 {
            (self.expiries, self.heard) = (1, heard);
        } else if self.heard == heard {
            self.expiries = self.expiries.saturating_add(1);
        } else {
            (self.expiries, self.stale) = (0, false);
        }
        !self.stale && self.expiries > STALE
    }
}

/// A connection's timer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DataTimer {
    /// How long it runs, when it runs out, and when it is looked at next; 0: it does not, is not [ns].
    interval: u64,
    due: u64,
    planned: u64,
}

impl<O: Observer> Sim<O> {
    /// Data was given out, or (`progress`) acknowledged at the level of the connection: the timer runs, anew after progress.
    pub(crate) fn run_data_timer(&mut self, index: u32, progress: bool) {
        if !self.config.data_timer {
            return;
        }
        let now = self.now;
        let conn = &mut self.conns[index as usize];
        let (outstanding, generation) = (conn.send.una < conn.send.next, conn.generation);
        let timer = &mut conn.timer;
        if !outstanding {
            timer.due = 0;
        } else if progress || timer.due == 0 {
            timer.due = now + timer.interval.max(1);
            if timer.planned == 0 || timer.planned > timer.due {
                timer.planned = timer.due;
                let at = timer.due;
                self.plan(at, Plan::Again(index, generation));
            }
        }
    }

    /// The timer's length is what the subflows' timers have to run yet.
    pub(crate) fn set_data_timer(&mut self, index: u32) {
        let Sim { conns, subs, senders, now, .. } = self;
        let conn = &mut conns[index as usize];
        let open = conn.subs().iter().filter(|&&flow| subs[flow as usize].open);
        let left = open.map(|&flow| &senders[flow as usize]).filter(|sender| sender.progress.expiries == 0);
        let longest = left.map(|sender| sender.deadline()).filter(|&at| at != u64::MAX).max();
        conn.timer.interval = longest.map_or(LEAST, |at| at.saturating_sub(*now).max(1));
    }

    /// The timer is looked at.
    pub(crate) fn data_timer(&mut self, index: u32, generation: u16) {
        let now = self.now;
        let conn = &mut self.conns[index as usize];
        if !conn.live || conn.generation != generation || conn.timer.planned != now {
            return;
        }
        conn.timer.planned = 0;
        if conn.timer.due == 0 {
            return;
        }
        if conn.timer.due <= now {
            conn.timer.due = 0;
            self.send_again(index);
        } else {
            conn.timer.planned = conn.timer.due;
            let at = conn.timer.due;
            self.plan(at, Plan::Again(index, generation));
        }
    }

    fn send_again(&mut self, index: u32) {
        let Sim { conns, subs, senders, .. } = self;
        let conn = &mut conns[index as usize];
        let (mut idle, mut backup, mut stale, mut least) = (None, None, None, u8::MAX);
        for &flow in conn.subs().iter().filter(|&&flow| subs[flow as usize].open) {
            let sender = &mut senders[flow as usize];
            if sender.out() == 0 && sender.queue.is_empty() {
                let place = if sender.held { &mut backup } else { &mut idle };
                *place = place.or(Some(flow));
                continue;
            }
            if sender.progress.expire(sender.heard) {
                stale = stale.or(Some(flow));
            }
            least = least.min(sender.progress.expiries);
        }
        let fine = |flow: u32| {
            let progress = &mut senders[flow as usize].progress;
            subs[flow as usize].open && progress.expiries < STALE - 1 && !progress.stale
        };
        if let Some(flow) = stale
            && conn.subs().iter().copied().filter(|&other| other != flow).any(fine)
        {
            senders[flow as usize].progress.stale = true;
            conn.send.again.clear();
            conn.send.again.extend((conn.send.una..conn.send.next).map(|dsn| (dsn, ANY)));
        } else if let Some(flow) = idle.or(backup.filter(|_| least > 1)) {
            let end = conn.send.next.min(conn.send.una + FRAGMENT.div_ceil(u64::from(conn.send.mss)));
            senders[flow as usize].queue.extend(conn.send.una..end);
        }
        self.push(index);
        self.run_data_timer(index, true);
    }
}

#[cfg(test)]
mod tests {
    use pathcast_scenario::{End, Scenario};

    use super::*;
    use crate::conn::Owner;
    use crate::handshake::Wanted;
    use crate::observe::Nobody;

    /// The kernel sends over a backup only where no other has made progress for two expiries (`mptcp_subflow_get_retrans`).
    #[test]
    fn a_held_subflow_repeats_nothing_at_the_first_expiry() {
        let link = |name| {
            format!(
                "[[link]]\nname = \"{name}\"\na = \"client\"\nb = \"server\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
                 [[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]\n"
            )
        };
        let text = format!(
            "{}{}[[flow]]\nname = \"f\"\npaths = [\"a\"]\ncontrol = \"reno\"\nbytes = \"1KB\"\n\
             [[change]]\nat = \"3s\"\nlink = \"a\"\nloss = 1.0\n",
            link("a"),
            link("b")
        );
        let mut sim = Sim::new(Scenario::parse(&text, &[]).unwrap(), Nobody).unwrap();
        let (to, paths) = (End::Server, vec![0, 1]);
        sim.connect(&Wanted {
            owner: Owner::Nobody,
            paths,
            multipath: true,
            to,
            control: 0,
            bytes: None,
            steered: false,
        });
        sim.run(1_000_000_000, u64::MAX, |sim| sim.subs.len() == 2 && sim.subs[1].open);
        sim.senders[1].held = true;
        sim.run(3_000_000_000, u64::MAX, |_| false);
        let before = sim.senders[1].stats.sent;
        assert_eq!((sim.senders[1].out(), sim.senders[1].queue.len()), (0, 0), "it is idle");
        let expired = |sim: &mut Sim<Nobody>, times| {
            sim.run(60_000_000_000, u64::MAX, |sim| sim.senders[0].progress.expiries == times);
            (sim.senders[0].progress.expiries, sim.senders[1].stats.sent > before)
        };
        assert_eq!([1, 2].map(|times| expired(&mut sim, times)), [(1, false), (2, true)]);
    }

    #[test]
    fn five_expiries_without_an_ack_make_it_stale_and_one_ack_active() {
        let mut progress = Progress::default();
        assert_eq!([1, 2, 3, 4, 5].map(|_| progress.expire(7)), [false, false, false, false, true]);
        progress.stale = true;
        assert!(!progress.is_active(7));
        assert!(!progress.expire(7), "it is already");
        assert!(progress.is_active(8));
    }

    #[test]
    fn an_ack_between_expiries_begins_anew() {
        let mut progress = Progress::default();
        (0..4).for_each(|_| assert!(!progress.expire(7)));
        assert!(!progress.expire(8), "heard of");
        assert_eq!([1, 2, 3, 4, 5].map(|_| progress.expire(8)), [false, false, false, false, true]);
    }
}
