//! Whose turn it is: sessions measure in the order of their arrival.

use std::collections::VecDeque;

use pathcast_base::Nanos;

use super::cookie::VALID;

/// Sessions that are over and whose cookies may still be good.
const REMEMBERED: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Entry {
    session: u64,
    measures: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order of arrival.
    entries: VecDeque<Entry>,
    /// Sessions that are over, and when they ended.
    gone: VecDeque<(u64, Nanos)>,
}

impl Queue {
    /// A session has come: it waits until [`Queue::promote`] names it.
    pub fn enter(&mut self, session: u64) {
        self.entries.push_back(Entry { session, measures: false });
    }

    /// The next session that may measure now, when so many may at once.
    pub fn promote(&mut self, at_once: usize) -> Option<u64> {
        if self.measuring() >= at_once {
            return None;
        }
        let entry = self.entries.iter_mut().find(|entry| !entry.measures)?;
        entry.measures = true;
        Some(entry.session)
    }

    pub fn measuring(&self) -> usize {
        self.entries.iter().filter(|entry| entry.measures).count()
    }

    /// Sessions that wait, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().filter(|entry| !entry.measures).map(|entry| entry.session)
    }

    /// How many wait before a session that waits.
    pub fn ahead(&self, session: u64) -> usize {
        self.waiting().take_while(|&waits| waits != session).count()
    }

    /// A session is over.
    pub fn leave(&mut self, now: Nanos, session: u64) {
        self.entries.retain(|entry| entry.session != session);
        self.gone.push_back((session, now));
        while self.gone.front().is_some_and(|gone| gone.1 + VALID < now) || self.gone.len() > REMEMBERED {
            self.gone.pop_front();
        }
    }

    /// Whether a session was here and is over: its cookie does not open it again.
    pub fn is_gone(&self, session: u64) -> bool {
        self.gone.iter().any(|gone| gone.0 == session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served() {
        let mut queue = Queue::default();
        (1..=3).for_each(|session| queue.enter(session));
        assert_eq!((queue.promote(1), queue.promote(1), queue.ahead(2), queue.ahead(3)), (Some(1), None, 0, 1));
        queue.leave(Nanos(0), 2);
        assert_eq!(queue.ahead(3), 0);
        queue.leave(Nanos(0), 1);
        assert_eq!((queue.promote(1), queue.measuring()), (Some(3), 1));
        assert!(queue.is_gone(1) && !queue.is_gone(3));
        queue.leave(VALID + Nanos(1), 3);
        assert!(!queue.is_gone(1) && queue.is_gone(3));
    }
}
