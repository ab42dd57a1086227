//! The memory that what is known of packets may take, of all sessions of a far end together.
//!
//! One half is divided: each session that can be has its part, whatever the others do. Of the other half a session gets more while
//! that is no more than what is left then (dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998): one alone gets
//! half of it, n of them an (n+1)th each, and whoever comes later finds something.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// See the [module](self). Its clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// What a session has for itself, and what all may have beyond that [byte].
    each: usize,
    shared: usize,
    taken: Arc<AtomicUsize>,
}

impl Room {
    /// `bytes` for up to so many sessions.
    pub fn new(bytes: u64, sessions: usize) -> Room {
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX);
        Room { each: half / sessions.max(1), shared: half, taken: Arc::default() }
    }

    /// Of one's own measurement, which has its bounds elsewhere.
    pub fn boundless() -> Room {
        Room::new(u64::MAX, 1)
    }

    /// A session's part, with nothing in it.
    pub fn share(&self) -> Share {
        Share { room: self.clone(), own: Arc::default() }
    }
}

/// What one session keeps. Its clones are of the same session; each is told for itself by a [`Holding`].
#[derive(Clone, Debug)]
pub(super) struct Share {
    room: Room,
    own: Arc<AtomicUsize>,
}

impl Share {
    /// Something of the session that takes memory: nothing yet.
    pub fn holding(&self) -> Holding {
        Holding { share: self.clone(), bytes: 0 }
    }

    #[cfg(test)]
    pub fn own(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    fn beyond(&self, own: usize) -> usize {
        own.saturating_sub(self.room.each)
    }

    /// Whether so much more may be kept.
    fn fits(&self, more: usize) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        let (now, then) = (self.beyond(own), self.beyond(own.saturating_add(more)));
        let taken = self.room.taken.load(Ordering::Relaxed);
        then == 0 || then <= self.room.shared.saturating_sub(taken.saturating_sub(now).saturating_add(then))
    }

    /// How much more that is, as things stand.
    fn left(&self) -> usize {
        let own = self.own.load(Ordering::Relaxed);
        let others = self.room.taken.load(Ordering::Relaxed).saturating_sub(self.beyond(own));
        (self.room.each + self.room.shared.saturating_sub(others) / 2).saturating_sub(own)
    }

    fn change(&self, from: usize, to: usize) {
        let own = self.own.load(Ordering::Relaxed);
        let new = own.saturating_sub(from) + to;
        self.own.store(new, Ordering::Relaxed);
        let taken = self.room.taken.load(Ordering::Relaxed);
        self.room.taken.store(taken.saturating_sub(self.beyond(own)) + self.beyond(new), Ordering::Relaxed);
    }
}

/// What one thing of a session takes; given back with it. A far end is one thread's at a time.
#[derive(Debug)]
pub(super) struct Holding {
    share: Share,
    bytes: usize,
}

impl Holding {
    /// It takes so much now, whether there is room for it or not.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.share.change(self.bytes, bytes);
            self.bytes = bytes;
        }
    }

    /// Whether so much more may be kept.
    pub fn fits(&self, more: usize) -> bool {
        self.share.fits(more)
    }

    /// How much more that is, as things stand.
    pub fn left(&self) -> usize {
        self.share.left()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes pieces as long as they fit.
    fn greedy(holding: &mut Holding, piece: usize) -> usize {
        while holding.fits(piece) {
            holding.set(holding.bytes + piece);
        }
        holding.bytes
    }

    #[test]
    fn one_alone_gets_a_half_of_the_shared_and_all_together_no_more_than_there_is() {
        let room = Room::new(12_800, 64);
        let mut all: Vec<Holding> = (0..64).map(|_| room.share().holding()).collect();
        assert_eq!(all[0].left(), 100 + 3200);
        assert_eq!(greedy(&mut all[0], 10), 100 + 3200);
        assert_eq!((all[0].left(), all[1].left()), (0, 100 + 1600));
        let took: Vec<usize> = (0..3).flat_map(|_| 0..64).map(|k| greedy(&mut all[k], 10)).collect();
        assert!(took.iter().all(|&own| own >= 100), "each has its part: {took:?}");
        assert!(all.iter().map(|one| one.bytes).sum::<usize>() <= 12_800);
        drop(all);
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
        assert_eq!(greedy(&mut room.share().holding(), 10), 3300, "it is given back");
    }

    #[test]
    fn what_a_session_has_counts_together() {
        let share = Room::new(12_800, 64).share();
        let (mut sink, mut source) = (share.holding(), share.holding());
        assert_eq!(greedy(&mut sink, 10), 3300);
        assert!(!source.fits(10));
        sink.set(0);
        assert_eq!(greedy(&mut source, 10), 3300);
        let mut own = Room::boundless().share().holding();
        assert!(own.fits(usize::MAX / 8) && own.left() > usize::MAX / 8);
        own.set(1 << 40);
        assert!(own.fits(1));
    }
}
