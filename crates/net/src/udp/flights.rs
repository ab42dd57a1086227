//! Trains that are being sent, several at once: which packet is next and when. Those of one key leave one after the other,
//! however late: its receiver takes a packet of a later train for a sign that the earlier one is through.

use pathcast_base::Nanos;
use pathcast_measure::machine::Train;

use super::socket::Target;

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
}

/// All of them, in the order in which they were begun.
pub(crate) struct Flights<K>(Vec<Flight<K>>);

impl<K: PartialEq> Flights<K> {
    pub fn new() -> Flights<K> {
        Flights(Vec::new())
    }

    /// Begins a train, now if its time has passed.
    pub fn add(&mut self, now: Nanos, key: K, socket: usize, to: Option<Target>, train: Train) {
        let due = train.at.max(now);
        self.0.push(Flight { key, socket, to, train, next: 0, due });
    }

    /// The first train of each key.
    fn first(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(|&i| self.0[..i].iter().all(|before| before.key != self.0[i].key))
    }

    /// When the next packet of all is due.
    pub fn due(&self) -> Option<Nanos> {
        self.first().map(|i| self.0[i].due).min()
    }

    /// The train whose packet is due now and the longest.
    pub fn next_due(&self, now: Nanos) -> Option<usize> {
        let first = self.first().min_by_key(|&i| self.0[i].due)?;
        (self.0[first].due <= now).then_some(first)
    }

    pub fn get(&self, index: usize) -> &Flight<K> {
        &self.0[index]
    }

    /// The packet that was due has been handed over at `now`.
    pub fn advance(&mut self, index: usize, now: Nanos) {
        let flight = &mut self.0[index];
        let Some(&gap) = flight.train.gaps.get(flight.next) else {
            self.0.remove(index);
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
        self.0.retain(|flight| keep(&flight.key));
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
        flights.add(Nanos(0), 'a', 0, None, Train::even(0, 0, Nanos(10), 3, Nanos(20), 0));
        flights.add(Nanos(0), 'b', 1, None, Train::even(1, 0, Nanos(20), 2, Nanos(20), 0));
        assert_eq!(flights.due(), Some(Nanos(10)));
        let left = leave(&mut flights, &[10, 20, 30, 40, 50]);
        assert_eq!(left, [(10, 'a', 0), (20, 'b', 0), (30, 'a', 1), (40, 'b', 1), (50, 'a', 2)]);
        assert_eq!(flights.due(), None);
    }

    #[test]
    fn a_late_packet_makes_no_burst_and_small_delays_do_not_add_up() {
        let mut flights = Flights::new();
        flights.add(Nanos(50), 'a', 0, None, Train::even(0, 0, Nanos(10), 6, Nanos(100), 0));
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
        flights.add(Nanos(0), 'a', 0, None, Train::even(0, 0, Nanos(10), 3, Nanos(100), 0));
        flights.add(Nanos(0), 'a', 0, None, Train::even(0, 3, Nanos(300), 2, Nanos(10), 0));
        flights.add(Nanos(0), 'b', 0, None, Train::even(0, 0, Nanos(320), 1, Nanos(0), 0));
        // the second packet is so late that the rest of its train is, too
        let left = leave(&mut flights, &[10, 305, 320, 405, 406, 416]);
        assert_eq!(left, [(10, 'a', 0), (305, 'a', 1), (320, 'b', 0), (405, 'a', 2), (405, 'a', 0), (416, 'a', 1)]);
    }

    #[test]
    fn back_to_back() {
        let mut flights = Flights::new();
        flights.add(Nanos(0), 'a', 0, None, Train::even(0, 0, Nanos(0), 3, Nanos(0), 0));
        assert_eq!(leave(&mut flights, &[5]).len(), 3);
        flights.add(Nanos(9), 'a', 0, None, Train::even(0, 0, Nanos(0), 3, Nanos(0), 0));
        let first = flights.next_due(Nanos(10)).unwrap();
        flights.advance(first, Nanos(10));
        flights.add(Nanos(11), 'b', 0, None, Train::even(0, 0, Nanos(0), 1, Nanos(0), 0));
        assert_eq!(leave(&mut flights, &[12]), [(12, 'a', 1), (12, 'a', 2), (12, 'b', 0)]);
    }
}
