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
    /// The time just before it was handed to the kernel.
    own: Nanos,
}

/// When a packet left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Departure<K> {
    pub what: K,
    pub at: Nanos,
    /// Whether the kernel says so.
    pub by_kernel: bool,
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

    /// A packet was handed to the kernel; what is known of it already.
    pub fn sent(&mut self, what: K, own: Nanos) -> Option<Departure<K>> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        if self.missed >= PATIENCE {
            return Some(Departure { what, at: own, by_kernel: false });
        }
        self.waiting.push_back(Waiting { number, what, own });
        None
    }

    /// The kernel's stamp of the packet with this number has come; `at` is none if it makes no sense.
    pub fn stamped(&mut self, number: u32, at: Option<Nanos>) -> Option<Departure<K>> {
        (self.missed, self.wait) = (0, WAIT);
        let place = self.waiting.iter().position(|w| w.number == number)?;
        let Waiting { what, own, .. } = self.waiting.remove(place)?;
        // one from before the packet was sent belongs to another, whose number was the same before an error
        let at = at.filter(|&at| at >= own);
        Some(Departure { what, at: at.unwrap_or(own), by_kernel: at.is_some() })
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
        self.waiting.pop_front().map(|w| Departure { what: w.what, at: w.own, by_kernel: false })
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
        Some(Departure { what, at: Nanos(at), by_kernel })
    }

    #[test]
    fn stamps_find_their_packets_in_any_order() {
        let mut unstamped = Unstamped::new();
        for (i, what) in ['a', 'b', 'c'].into_iter().enumerate() {
            assert_eq!(unstamped.sent(what, Nanos(100 * i as u64)), None);
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
            assert_eq!(unstamped.sent('x', Nanos(i.into())), None);
        }
        assert_eq!(unstamped.overdue(FIRST - Nanos(1)), None);
        for i in 0..PATIENCE {
            assert_eq!(unstamped.overdue(FIRST * 2), left('x', i.into(), false));
        }
        // now none is waited for, until a stamp comes all the same
        assert_eq!(unstamped.sent('y', Nanos(7)), left('y', 7, false));
        assert_eq!(unstamped.stamped(PATIENCE, Some(Nanos(8))), None);
        assert_eq!(unstamped.sent('z', Nanos(9)), None);
        assert_eq!(unstamped.stamped(PATIENCE + 1, Some(Nanos(10))), left('z', 10, true));
        // it does give stamps, then
        unstamped.sent('u', Nanos(11));
        assert_eq!(unstamped.until(), Some(Nanos(11) + WAIT));
    }

    #[test]
    fn numbers_begin_anew_after_an_error() {
        let mut unstamped = Unstamped::new();
        unstamped.sent('a', Nanos(1));
        assert_eq!(unstamped.give_up(), left('a', 1, false));
        unstamped.begin_anew();
        unstamped.sent('b', Nanos(2));
        assert_eq!(unstamped.stamped(0, Some(Nanos(3))), left('b', 3, true));
    }
}
