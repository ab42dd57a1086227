//! Trains that are being sent, several at once: which packet is next and when. Those of one flow leave one after the other,
//! however late: its receiver takes a packet of a later train for a sign that the earlier one is through. Flows wait for nobody.

use std::collections::VecDeque;

use pathcast_base::Nanos;
use pathcast_measure::machine::Train;

use super::socket::Target;

/// Which of the flows of one key a train is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The path's probes.
    Path,
    /// Those beside them.
    Beside,
    /// What is said, which is no probe.
    Words,
}

/// A train that is being sent.
pub(crate) struct Flight<K> {
    /// Whose it is.
    pub key: K,
    pub socket: usize,
    pub to: Option<Target>,
    pub train: Train,
    /// The packet that is next.
    pub next: usize,
    due: Nanos,
    /// So many were begun before.
    number: u64,
}

/// Trains that leave one after the other, in the order in which they were begun: never none.
struct Flow<K> {
    lane: Lane,
    trains: VecDeque<Flight<K>>,
}

/// All of them. A backlog of a host that is held up costs no more a packet: only flows are looked through.
pub(crate) struct Flights<K> {
    flows: Vec<Flow<K>>,
    begun: u64,
}

impl<K: PartialEq> Flights<K> {
    pub fn new() -> Flights<K> {
        Flights { flows: Vec::new(), begun: 0 }
    }

    /// Begins a train, now if its time has passed.
    pub fn add(&mut self, now: Nanos, (key, lane): (K, Lane), socket: usize, to: Option<Target>, train: Train) {
        let due = train.at.max(now);
        let flight = Flight { key, socket, to, train, next: 0, due, number: self.begun };
        self.begun += 1;
        let same = |flow: &&mut Flow<K>| flow.lane == lane && flow.trains[0].key == flight.key;
        match self.flows.iter_mut().find(same) {
            Some(flow) => flow.trains.push_back(flight),
            None => self.flows.push(Flow { lane, trains: VecDeque::from([flight]) }),
        }
    }

    /// The flow whose packet is due first; of several the one whose train was begun first.
    fn first(&self) -> Option<(usize, Nanos)> {
        let front = |flow: &Flow<K>| (flow.trains[0].due, flow.trains[0].number);
        let (index, flow) = self.flows.iter().enumerate().min_by_key(|(_, flow)| front(flow))?;
        Some((index, flow.trains[0].due))
    }

    /// When the next packet of all is due.
    pub fn due(&self) -> Option<Nanos> {
        self.first().map(|first| first.1)
    }

    /// The flow whose packet is due now and the longest.
    pub fn next_due(&self, now: Nanos) -> Option<usize> {
        self.first().filter(|first| first.1 <= now).map(|first| first.0)
    }

    /// The train that a flow is at.
    pub fn get(&self, flow: usize) -> &Flight<K> {
        &self.flows[flow].trains[0]
    }

    /// The packet that was due has been handed over at `now`.
    pub fn advance(&mut self, flow: usize, now: Nanos) {
        let trains = &mut self.flows[flow].trains;
        let flight = &mut trains[0];
        let Some(&gap) = flight.train.gaps.get(flight.next) else {
            trains.pop_front();
            if trains.is_empty() {
                self.flows.remove(flow);
            }
            return;
        };
        flight.next += 1;
        // small delays do not add up; after a long one the rest keeps its gaps rather than leave as a burst. What has no gaps
        // keeps its time, so that nothing that was asked for later comes in between
        let late = gap > Nanos::ZERO && now.saturating_sub(flight.due) > gap;
        let from = if late { now } else { flight.due };
        flight.due = Nanos(from.0.saturating_add(gap.0));
    }

    /// Keeps only some.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.flows.retain(|flow| keep(&flow.trains[0].key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leave(flights: &mut Flights<char>, times: &[u64]) -> Vec<(u64, char, usize)> {
        let mut left = Vec::new();
        for &now in times {
            while let Some(i) = flights.next_due(Nanos(now)) {
                left.push((now, flights.get(i).key, flights.get(i).next));
                flights.advance(i, Nanos(now));
            }
        }
        left
    }

    #[test]
    fn two_trains_interleave() {
        let mut flights = Flights::new();
        flights.add(Nanos(0), ('a', Lane::Path), 0, None, Train::even(0, 0, Nanos(10), 3, Nanos(20), 0));
        flights.add(Nanos(0), ('b', Lane::Path), 1, None, Train::even(1, 0, Nanos(20), 2, Nanos(20), 0));
        assert_eq!(flights.due(), Some(Nanos(10)));
        let left = leave(&mut flights, &[10, 20, 30, 40, 50]);
        assert_eq!(left, [(10, 'a', 0), (20, 'b', 0), (30, 'a', 1), (40, 'b', 1), (50, 'a', 2)]);
        assert_eq!(flights.due(), None);
    }

    #[test]
    fn a_late_packet_makes_no_burst_and_small_delays_do_not_add_up() {
        let mut flights = Flights::new();
        flights.add(Nanos(50), ('a', Lane::Path), 0, None, Train::even(0, 0, Nanos(10), 6, Nanos(100), 0));
        assert_eq!(flights.due(), Some(Nanos(50)), "begins late");
        // 9 late, then 350 late: the one after that comes a whole gap later
        assert_eq!(leave(&mut flights, &[59, 150, 600, 650, 699, 700, 800]).len(), 5);
        assert_eq!(flights.due(), Some(Nanos(900)));
        flights.retain(|key| *key != 'a');
        assert_eq!(flights.due(), None);
    }

    #[test]
    fn of_one_key_the_next_waits_for_the_last_packet_before_it() {
        let mut flights = Flights::new();
        flights.add(Nanos(0), ('a', Lane::Path), 0, None, Train::even(0, 0, Nanos(10), 3, Nanos(100), 0));
        flights.add(Nanos(0), ('a', Lane::Path), 0, None, Train::even(0, 3, Nanos(300), 2, Nanos(10), 0));
        flights.add(Nanos(0), ('b', Lane::Path), 0, None, Train::even(0, 0, Nanos(320), 1, Nanos(0), 0));
        // the second packet is so late that the rest of its train is, too
        let left = leave(&mut flights, &[10, 305, 320, 405, 406, 416]);
        assert_eq!(left, [(10, 'a', 0), (305, 'a', 1), (320, 'b', 0), (405, 'a', 2), (405, 'a', 0), (416, 'a', 1)]);
    }

    /// What goes beside a path's probes, and what is said, waits for none of them: a sparse flow that did would see no queue of theirs.
    #[test]
    fn flows_of_one_key_wait_for_each_other_nowhere() {
        let mut flights = Flights::new();
        flights.add(Nanos(0), ('a', Lane::Path), 0, None, Train::even(0, 0, Nanos(10), 3, Nanos(100), 0));
        flights.add(Nanos(0), ('a', Lane::Beside), 1, None, Train::even(0, 10, Nanos(50), 3, Nanos(100), 0));
        flights.add(Nanos(0), ('a', Lane::Path), 0, None, Train::even(0, 3, Nanos(300), 1, Nanos(0), 0));
        flights.add(Nanos(55), ('a', Lane::Words), 0, None, Train::even(0, 20, Nanos(0), 1, Nanos(0), 0));
        let mut left = Vec::new();
        for now in (0..400).step_by(5) {
            while let Some(i) = flights.next_due(Nanos(now)) {
                left.push((now, flights.get(i).train.seq + flights.get(i).next as u64));
                flights.advance(i, Nanos(now));
            }
        }
        assert_eq!(left, [(10, 0), (50, 10), (55, 20), (110, 1), (150, 11), (210, 2), (250, 12), (300, 3)]);
    }

    #[test]
    fn back_to_back() {
        let mut flights = Flights::new();
        flights.add(Nanos(0), ('a', Lane::Path), 0, None, Train::even(0, 0, Nanos(0), 3, Nanos(0), 0));
        assert_eq!(leave(&mut flights, &[5]).len(), 3);
        flights.add(Nanos(9), ('a', Lane::Path), 0, None, Train::even(0, 0, Nanos(0), 3, Nanos(0), 0));
        let first = flights.next_due(Nanos(10)).unwrap();
        flights.advance(first, Nanos(10));
        flights.add(Nanos(11), ('b', Lane::Path), 0, None, Train::even(0, 0, Nanos(0), 1, Nanos(0), 0));
        assert_eq!(leave(&mut flights, &[12]), [(12, 'a', 1), (12, 'a', 2), (12, 'b', 0)]);
    }
}
