//! Matches the kernel's stamps of what was sent to the packets: they come late, or never where a device does not give them.

use std::collections::VecDeque;

use pathcast_base::Nanos;

/// How long the first stamp is waited for: some devices give none. It comes when the packet leaves the host's own queue,
/// before sendmsg returns where that is empty.
const FIRST: Nanos = Nanos::millis(50);
/// How long others are waited for: the host's own queue may be long.
const WAIT: Nanos = Nanos::millis(500);
/// After so many packets without a stamp none is waited for any more.
const PATIENCE: u32 = 8;

/// A packet whose stamp has not come.
struct Waiting<K> {
    number: u32,
    what: K,
    /// The time just before it was handed to the kernel, and just after.
    own: Nanos,
    handed: Nanos,
}

/// When a packet left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Departure<K> {
    pub what: K,
    pub at: Nanos,
    /// When it was handed over, if it waited in the host's own queue then; else the same.
    pub handed: Nanos,
    /// Whether the kernel says so.
    pub by_kernel: bool,
}

impl<K> Departure<K> {
    /// Nobody but this host says when.
    pub fn unstamped(what: K, own: Nanos) -> Departure<K> {
        Departure { what, at: own, handed: own, by_kernel: false }
    }
}

/// The packets of a socket that wait for their stamps.
pub(crate) struct Unstamped<K> {
    waiting: VecDeque<Waiting<K>>,
    /// The number that the kernel gives to the next packet.
    next: u32,
    /// Packets in a row that had no stamp in time.
    missed: u32,
    /// How long a stamp is waited for.
    wait: Nanos,
}

impl<K> Unstamped<K> {
    pub fn new() -> Unstamped<K> {
        Unstamped { waiting: VecDeque::new(), next: 0, missed: 0, wait: FIRST }
    }

    /// A packet was handed to the kernel, between these two times; what is known of it already.
    pub fn sent(&mut self, what: K, own: Nanos, handed: Nanos) -> Option<Departure<K>> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        if self.missed >= PATIENCE {
            return Some(Departure::unstamped(what, own));
        }
        self.waiting.push_back(Waiting { number, what, own, handed });
        None
    }

    /// The kernel's stamp of the packet with this number has come; `at` is none if it makes no sense.
    pub fn stamped(&mut self, number: u32, at: Option<Nanos>) -> Option<Departure<K>> {
        (self.missed, self.wait) = (0, WAIT);
        let place = self.waiting.iter().position(|w| w.number == number)?;
        let Waiting { what, own, handed, .. } = self.waiting.remove(place)?;
        // one from before the packet was sent belongs to another, whose number was the same before an error
        let Some(at) = at.filter(|&at| at >= own) else { return Some(Departure::unstamped(what, own)) };
        // what left before the call came back has not waited, however long this thread was kept from going on
        Some(Departure { what, at, handed: at.min(handed), by_kernel: true })
    }

    /// When the first packet has waited long enough.
    pub fn until(&self) -> Option<Nanos> {
        self.waiting.front().map(|w| w.own + self.wait)
    }

    /// A packet that has waited long enough.
    pub fn overdue(&mut self, now: Nanos) -> Option<Departure<K>> {
        if self.until()? > now {
            return None;
        }
        self.missed += 1;
        self.give_up()
    }

    /// The first packet, without its stamp.
    pub fn give_up(&mut self) -> Option<Departure<K>> {
        self.waiting.pop_front().map(|w| Departure::unstamped(w.what, w.own))
    }

    /// The kernel counts from 0 again; all packets have been given up.
    pub fn begin_anew(&mut self) {
        debug_assert!(self.waiting.is_empty());
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(what: char, at: u64, by_kernel: bool) -> Option<Departure<char>> {
        Some(Departure { what, at: Nanos(at), handed: Nanos(at), by_kernel })
    }

    /// Hands over a packet.
    fn sent(unstamped: &mut Unstamped<char>, what: char, own: u64) -> Option<Departure<char>> {
        unstamped.sent(what, Nanos(own), Nanos(own + 50))
    }

    /// The second of two leaves long after the call that handed it over came back.
    #[test]
    fn what_waits_in_the_hosts_own_queue_was_handed_over_before_it_left() {
        let mut unstamped = Unstamped::new();
        for (what, own) in [('a', 100), ('b', 200)] {
            assert_eq!(unstamped.sent(what, Nanos(own), Nanos(own + 50)), None);
        }
        assert_eq!(unstamped.stamped(0, Some(Nanos(130))), left('a', 130, true));
        let waited = Departure { what: 'b', at: Nanos(900), handed: Nanos(250), by_kernel: true };
        assert_eq!(unstamped.stamped(1, Some(Nanos(900))), Some(waited));
    }

    #[test]
    fn stamps_find_their_packets_in_any_order() {
        let mut unstamped = Unstamped::new();
        for (i, what) in ['a', 'b', 'c'].into_iter().enumerate() {
            assert_eq!(sent(&mut unstamped, what, 100 * i as u64), None);
        }
        assert_eq!(unstamped.stamped(1, Some(Nanos(105))), left('b', 105, true));
        assert_eq!(unstamped.stamped(1, Some(Nanos(106))), None);
        assert_eq!(unstamped.stamped(0, None), left('a', 0, false));
        assert_eq!(unstamped.stamped(2, Some(Nanos(199))), left('c', 200, false));
        assert_eq!(unstamped.until(), None);
    }

    #[test]
    fn what_has_no_stamp_in_time_has_its_own() {
        let mut unstamped = Unstamped::new();
        for i in 0..PATIENCE {
            assert_eq!(sent(&mut unstamped, 'x', i.into()), None);
        }
        assert_eq!(unstamped.overdue(FIRST - Nanos(1)), None);
        for i in 0..PATIENCE {
            assert_eq!(unstamped.overdue(FIRST * 2), left('x', i.into(), false));
        }
        // now none is waited for, until a stamp comes all the same
        assert_eq!(sent(&mut unstamped, 'y', 7), left('y', 7, false));
        assert_eq!(unstamped.stamped(PATIENCE, Some(Nanos(8))), None);
        assert_eq!(sent(&mut unstamped, 'z', 9), None);
        assert_eq!(unstamped.stamped(PATIENCE + 1, Some(Nanos(10))), left('z', 10, true));
        // it does give stamps, then
        sent(&mut unstamped, 'u', 11);
        assert_eq!(unstamped.until(), Some(Nanos(11) + WAIT));
    }

    #[test]
    fn numbers_begin_anew_after_an_error() {
        let mut unstamped = Unstamped::new();
        sent(&mut unstamped, 'a', 1);
        assert_eq!(unstamped.give_up(), left('a', 1, false));
        unstamped.begin_anew();
        sent(&mut unstamped, 'b', 2);
        assert_eq!(unstamped.stamped(0, Some(Nanos(3))), left('b', 3, true));
    }
}
