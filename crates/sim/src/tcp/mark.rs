//! Explicit congestion notification at the sender: a reduction for a mark (RFC 3168, section 6.1.2), as Linux has it
//! (`tcp_enter_cwr`, `tcp_end_cwnd_reduction`).

use pathcast_congestion::{Connection, Event, State};

use super::config::Config;
use super::sender::Sender;

impl Sender {
    /// A link has marked a segment (RFC 3168, section 6.1.2): one reduction a window, as after a loss but not undone. It ends
    /// when a segment sent after it is acknowledged.
    pub(super) fn enter_cwr(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) {
        self.begin(now, config, group);
        self.undo.forget();
        self.start_reduction(config);
        self.state = State::Cwr;
    }

    /// The reduction for a mark is over.
    pub(super) fn end_reduction(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) {
        self.reduction.active = false;
        self.state = State::Open;
        self.flow.cwnd = self.flow.ssthresh.max(1);
        self.refresh(now, config);
        self.control.event(&mut self.flow, Event::Recovered);
        if let (true, Some(group)) = (self.grouped, group) {
            group.meet(&mut self.flow, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use pathcast_congestion::{Params, controller};
    use pathcast_scenario::Tcp;

    use super::*;
    use crate::packet::{Blocks, ECE, Kind, NONE, Packet};

    const MS: u64 = 1_000_000;

    fn ack(seq: u64, flags: u8, stamp: u64) -> Packet {
        let (hop, flow, extra, window, bytes, generation) = (0, 0, NONE, 0, 52, 0);
        Packet { seq, dsn: 0, stamp, hop, flow, extra, window, bytes, generation, kind: Kind::Ack, flags }
    }

    /// Twenty segments out and one mark: Reno halves to ten over a round trip, proportionally (one segment leaves for two that
    /// are delivered, as long as more than ten are out); what more marks come in it say nothing; then the window is ten, and grows again.
    #[test]
    fn one_reduction_a_window() {
        let config = Config::new(&Tcp { ecn: Some(true), initial_window: Some(20), ..Tcp::default() });
        let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 0, 100_000, &config, None);
        let mut dsn = 0;
        let mut fill = |sender: &mut Sender, now: u64| {
            while sender.room(&config) > 0 {
                sender.send_new(now, dsn, 1448, &config);
                dsn += 1;
            }
            sender.after_sending(now, true, false, &config);
            sender.out()
        };
        assert_eq!(fill(&mut sender, 0), 20);
        sender.acknowledge(100 * MS, &ack(1, ECE, 1), &Blocks::default(), &config, None);
        assert_eq!((sender.state, sender.flow.ssthresh, sender.answers_mark), (State::Cwr, 10, true));
        sender.answers_mark = false;
        let mut out = vec![fill(&mut sender, 100 * MS)];
        for seq in 2..=20 {
            sender.acknowledge(100 * MS + seq, &ack(seq, ECE, 1), &Blocks::default(), &config, None);
            assert_eq!((sender.state, sender.flow.ssthresh), (State::Cwr, 10), "{seq}");
            out.push(fill(&mut sender, 100 * MS + seq));
        }
        assert_eq!(out, [20, 19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10]);
        assert!(!sender.answers_mark, "CWR is told once a reduction");
        sender.acknowledge(200 * MS, &ack(21, 0, 100 * MS), &Blocks::default(), &config, None);
        assert_eq!((sender.state, sender.flow.cwnd), (State::Open, 10));
        assert_eq!((sender.stats.recoveries, sender.stats.retransmits), (0, 0));
        sender.acknowledge(201 * MS, &ack(22, ECE, 100 * MS), &Blocks::default(), &config, None);
        assert_eq!((sender.state, sender.flow.ssthresh), (State::Cwr, 5), "another window, another reduction");
    }
}
