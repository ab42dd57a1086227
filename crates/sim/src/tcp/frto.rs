//! After a timeout: whether it was spurious (F-RTO, RFC 5682, with SACK; Eifel, RFC 4015), and what is sent meanwhile. As in Linux
//! (`tcp_process_loss`, `tcp_xmit_recovery`), the first ACK that moves on lets new segments go before lost ones: what is told of
//! next says whether the original flight was lost.

use pathcast_congestion::State;

use super::ack::AckSummary;
use super::config::Config;
use super::sender::Sender;

impl Sender {
    /// An ACK within the loss state.
    pub(super) fn in_loss(&mut self, summary: &AckSummary, config: &Config) {
        self.tries_new = false;
        let original = config.sack && self.frto && summary.original;
        if config.undo && self.undo.armed && (original || (summary.moved && self.undo.was_delayed(summary.echo))) {
            self.unmark();
            self.take_back(config);
            self.state = State::Open;
            return;
        }
        if config.undo && self.frto {
            if self.nxt > self.high_seq {
                self.frto &= !summary.told && (summary.moved || summary.delivered == 0); // step 3.a: they were lost
            } else if summary.moved && self.una < self.high_seq {
                self.tries_new = true; // step 2.b
                return;
            }
        }
        if self.una >= self.high_seq {
            self.rack.recovered();
            self.state = State::Open;
            self.recover = Some(self.high_seq);
        }
    }

    /// New segments were to go first. If none has left, lost ones go again; whether that is so.
    pub(crate) fn tried(&mut self) -> bool {
        let gives_up = self.tries_new && self.nxt == self.high_seq;
        if gives_up {
            (self.tries_new, self.frto) = (false, false);
        }
        gives_up
    }
}

#[cfg(test)]
mod tests {
    use pathcast_scenario::{End, Scenario};

    use super::*;
    use crate::conn::Owner;
    use crate::handshake::Wanted;
    use crate::observe::Nobody;
    use crate::sim::Sim;

    const MS: u64 = 1_000_000;

    /// A connection of so many bytes that loses its fourth round and the probe of its tail, at the first ACK behind its timeout; and
    /// the segments that it had sent again when that came, the first for it among them.
    fn answered(bytes: Option<u64>, multipath: bool) -> (Sim<Nobody>, u64) {
        let text = "[[link]]\nname = \"a\"\na = \"client\"\nb = \"server\"\nrate = \"100Mbit\"\ndelay = \"50ms\"\n\
                    [[path]]\nname = \"a\"\nlinks = [\"a\"]\n\
                    [[flow]]\nname = \"f\"\npaths = [\"a\"]\ncontrol = \"reno\"\nbytes = \"1KB\"\n\
                    [[change]]\nat = \"350ms\"\nlink = \"a\"\nloss = { ab = 1.0 }\n\
                    [[change]]\nat = \"800ms\"\nlink = \"a\"\nloss = 0.0\n";
        let mut sim = Sim::new(Scenario::parse(text, &[]).unwrap(), Nobody).unwrap();
        let (to, paths) = (End::Server, vec![0]);
        sim.connect(&Wanted { owner: Owner::Nobody, paths, multipath, to, control: 0, bytes, steered: false });
        sim.run(5000 * MS, u64::MAX, |sim| sim.senders[0].state == State::Loss);
        let (una, before) = (sim.senders[0].una, sim.senders[0].stats.retransmits);
        sim.run(5000 * MS, u64::MAX, |sim| sim.senders[0].una > una);
        (sim, before)
    }

    /// Two new segments, and what was lost only when they are told of, over a window that does not grow by that.
    #[test]
    fn new_segments_go_before_lost_ones_after_a_timeout() {
        for multipath in [false, true] {
            let (mut sim, before) = answered(None, multipath);
            let sender = &sim.senders[0];
            assert_eq!((sender.nxt, sender.stats.retransmits, sender.flow.cwnd), (sender.high_seq + 2, before, 2));
            let end = sim.now + 110 * MS;
            sim.run(end, u64::MAX, |sim| sim.senders[0].stats.retransmits > before);
            let sender = &sim.senders[0];
            assert_eq!((sender.stats.retransmits, sender.flow.cwnd, sender.frto), (before + 1, 2, false));
        }
    }

    #[test]
    fn without_new_segments_lost_ones_go_at_once() {
        for multipath in [false, true] {
            let (sim, before) = answered(Some(130 * 1424), multipath); // rounds of 10, 20, 40 and 60
            let sender = &sim.senders[0];
            assert_eq!((sender.nxt, sender.stats.retransmits), (sender.high_seq, before + 2));
        }
    }
}
