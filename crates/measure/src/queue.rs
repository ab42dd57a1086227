//! Whose turn it is: keys take turns, of one key its sources, and of one source its sessions in the order of their arrival.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use pathcast_base::Nanos;

use super::cookie::VALID;

/// Sessions that are over and whose cookies may still be good.
const REMEMBERED: usize = 4096;

#[derive(Clone, Debug)]
struct Entry {
    session: u64,
    key: String,
    source: IpAddr,
    came: u64,
    measures: bool,
}

/// Sessions of one source, or sources of one key, and since when it is their turn: since the first of them came, or had its
/// turn last. Who has just had one comes after all who waited meanwhile; who comes anew comes after them, too.
struct Group<T> {
    since: u64,
    members: T,
}

type Source = Group<VecDeque<u64>>;
type Key = Group<BTreeMap<IpAddr, Source>>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the order of arrival.
    entries: VecDeque<Entry>,
    /// When those who wait had a turn last: a key, and one of its sources.
    keys: BTreeMap<String, u64>,
    sources: BTreeMap<(String, IpAddr), u64>,
    /// Arrivals and turns so far: the time of all numbers here.
    events: u64,
    /// Sessions that are over, and when they ended.
    gone: VecDeque<(u64, Nanos)>,
}

impl Queue {
    /// A session has come from this source, with this key: it waits until [`Queue::promote`] names it.
    pub fn enter(&mut self, session: u64, key: &str, source: IpAddr) {
        self.events += 1;
        self.entries.push_back(Entry { session, key: key.into(), source, came: self.events, measures: false });
    }

    /// The next session that may measure now, when so many may at once.
    pub fn promote(&mut self, at_once: usize) -> Option<u64> {
        if self.measuring() >= at_once {
            return None;
        }
        let session = self.order().into_iter().next()?;
        let entry = self.entries.iter_mut().find(|entry| entry.session == session)?;
        entry.measures = true;
        let (key, source) = (entry.key.clone(), entry.source);
        self.had_turn(key, source);
        Some(session)
    }

    /// A turn begins or ends.
    fn had_turn(&mut self, key: String, source: IpAddr) {
        self.events += 1;
        self.sources.insert((key.clone(), source), self.events);
        self.keys.insert(key, self.events);
        self.forget();
    }

    /// Who does not wait comes anew.
    fn forget(&mut self) {
        let waiting = || self.entries.iter().filter(|entry| !entry.measures);
        self.keys.retain(|key, _| waiting().any(|entry| entry.key == *key));
        self.sources.retain(|(key, source), _| waiting().any(|entry| entry.key == *key && entry.source == *source));
    }

    pub fn measuring(&self) -> usize {
        self.entries.iter().filter(|entry| entry.measures).count()
    }

    pub fn is_waiting(&self) -> bool {
        self.entries.iter().any(|entry| !entry.measures)
    }

    /// Sessions that wait, in the order in which their turns come if nobody else does.
    pub fn order(&self) -> Vec<u64> {
        let mut keys: BTreeMap<&str, Key> = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| !entry.measures) {
            let since = |last: Option<&u64>| last.map_or(entry.came, |&last| last.max(entry.came));
            let key = keys
                .entry(&entry.key)
                .or_insert_with(|| Key { since: since(self.keys.get(&entry.key)), members: BTreeMap::new() });
            let source = key.members.entry(entry.source).or_insert_with(|| Source {
                since: since(self.sources.get(&(entry.key.clone(), entry.source))),
                members: VecDeque::new(),
            });
            source.members.push_back(entry.session);
        }
        // who measures has its turn now
        for entry in self.entries.iter().filter(|entry| entry.measures) {
            if let Some(key) = keys.get_mut(entry.key.as_str()) {
                key.since = self.events + 1;
                key.members.get_mut(&entry.source).into_iter().for_each(|source| source.since = self.events + 1);
            }
        }
        let mut order = Vec::new();
        let mut now = self.events + 2;
        while let Some(key) =
            first(keys.values_mut(), |sources| sources.values().any(|source| !source.members.is_empty()))
        {
            key.since = now;
            if let Some(source) = first(key.members.values_mut(), |sessions| !sessions.is_empty()) {
                source.since = now;
                order.extend(source.members.pop_front());
            }
            now += 1;
        }
        order
    }

    /// A session is over.
    pub fn leave(&mut self, now: Nanos, session: u64) {
        let place = self.entries.iter().position(|entry| entry.session == session);
        let entry = place.and_then(|place| self.entries.remove(place));
        if let Some(entry) = entry.filter(|entry| entry.measures) {
            self.had_turn(entry.key, entry.source);
        }
        self.forget();
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

/// Whose turn it is for the longest time, of those where somebody waits.
fn first<'a, T: 'a>(
    groups: impl Iterator<Item = &'a mut Group<T>>,
    waits: impl Fn(&T) -> bool,
) -> Option<&'a mut Group<T>> {
    groups.filter(|group| waits(&group.members)).min_by_key(|group| group.since)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn first_come_first_served() {
        let mut queue = Queue::default();
        (1..=3).for_each(|session| queue.enter(session, "one", from(session as u8)));
        assert_eq!((queue.promote(1), queue.promote(1), queue.order()), (Some(1), None, vec![2, 3]));
        queue.leave(Nanos(0), 2);
        assert_eq!(queue.order(), [3]);
        queue.leave(Nanos(0), 1);
        assert_eq!((queue.promote(1), queue.measuring()), (Some(3), 1));
        assert!(queue.is_gone(1) && !queue.is_gone(3));
        queue.leave(VALID + Nanos(1), 3);
        assert!(!queue.is_gone(1) && queue.is_gone(3));
    }

    #[test]
    fn keys_take_turns_and_of_one_key_its_sources() {
        let mut queue = Queue::default();
        (1..=4).for_each(|session| queue.enter(session, "many", from(1)));
        queue.enter(5, "many", from(2));
        queue.enter(6, "few", from(1));
        queue.enter(7, "few", from(1));
        let mut turns = Vec::new();
        while let Some(session) = queue.promote(1) {
            turns.push(session);
            // who comes anew every time gains nothing by it
            let again = 100 + session;
            if session < 3 {
                queue.enter(again, "many", from(1));
            }
            queue.leave(Nanos(0), session);
        }
        assert_eq!(turns, [1, 6, 5, 7, 2, 3, 4, 101, 102]);
    }

    proptest! {
        /// While a source waits, no other one of its key has two turns, and no other key has two between those of its own.
        #[test]
        fn nobody_is_passed_twice(steps in prop::collection::vec((0u8..6, 0u8..3, 0u8..4), 1..200)) {
            let mut queue = Queue::default();
            let mut waiting: Vec<(u64, u8, u8)> = Vec::new();
            let mut turns = Vec::new();
            // who passed whom: another source of the same key, another key
            let mut passed: Vec<(u64, u8, Option<u8>)> = Vec::new();
            let mut session = 0;
            for (step, key, source) in steps {
                if step < 3 {
                    session += 1;
                    queue.enter(session, &key.to_string(), from(source));
                    waiting.push((session, key, source));
                } else if let (3, Some((id, ..))) = (step, waiting.get(usize::from(source)).copied()) {
                    queue.leave(Nanos(0), id);
                    waiting.retain(|of| of.0 != id);
                } else if !turns.is_empty() {
                    let id = turns.remove(usize::from(source) % turns.len());
                    queue.leave(Nanos(0), id);
                }
                let order = queue.order();
                prop_assert_eq!(order.len(), waiting.len());
                while let Some(id) = queue.promote(1) {
                    let place = waiting.iter().position(|of| of.0 == id).unwrap();
                    let (_, key, source) = waiting.remove(place);
                    turns.push(id);
                    for &(waits, of_key, of_source) in &waiting {
                        let by = match (of_key == key, of_source == source) {
                            (true, true) => continue,
                            (true, false) => (waits, key, Some(source)),
                            (false, _) => (waits, key, None),
                        };
                        prop_assert!(!passed.contains(&by), "{:?}", by);
                        passed.push(by);
                    }
                    // its key's turn lets the other keys pass once more; its own, its source's followers as well
                    passed.retain(|&(waits, by, at)| {
                        let Some(&(_, of_key, of_source)) = waiting.iter().find(|of| of.0 == waits) else { return false };
                        match at {
                            Some(_) => !(of_key == key && of_source == source),
                            None => of_key != key || by == key,
                        }
                    });
                }
                prop_assert_eq!(queue.measuring(), turns.len());
                prop_assert!(queue.keys.len() + queue.sources.len() <= 2 * waiting.len());
            }
        }
    }
}
