//! Who may have how many at once: sessions, over TCP and UDP together, and transfers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::address::source;

/// How many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Of everybody.
    pub in_all: usize,
    /// With one key.
    pub per_key: usize,
    /// From one source: an address, or of IPv6 a /64.
    pub per_source: usize,
}

impl Quota {
    /// What a far end grants unless it is told otherwise, over TCP and UDP together.
    pub const SESSIONS: Quota = Quota { in_all: 64, per_key: 32, per_source: 16 };
    /// The same of transfers.
    pub const TRANSFERS: Quota = Quota { in_all: 128, per_key: 64, per_source: 32 };
}

/// There is no place, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Of everybody.
    InAll(usize),
    /// With this key.
    OfKey(usize),
    /// From this source.
    OfSource(usize),
}

#[derive(Debug, Default)]
struct Places {
    /// Key and source of each.
    taken: BTreeMap<u64, (String, IpAddr)>,
    next: u64,
}

/// Gives out places. Its clones give out the same ones.
#[derive(Clone, Debug)]
pub struct Admission {
    quota: Quota,
    places: Arc<Mutex<Places>>,
}

/// One that is taken; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Mutex<Places>>,
    number: u64,
}

fn locked(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Admission {
    /// All places are free.
    pub fn new(quota: Quota) -> Admission {
        Admission { quota, places: Arc::default() }
    }

    /// Takes a place. Beside others a source gets no more than are left then, so that two do not take all of a key's.
    ///
    /// # Errors
    /// There is none for this key or this source, or for anybody.
    pub fn enter(&self, key_id: &str, from: IpAddr) -> Result<Place, Full> {
        let Quota { in_all, per_key, per_source } = self.quota;
        let from = source(from);
        let mut places = locked(&self.places);
        let count = |is: &dyn Fn(&(String, IpAddr)) -> bool| places.taken.values().filter(|of| is(of)).count();
        if count(&|of| of.0 == key_id) >= per_key {
            return Err(Full::OfKey(per_key));
        }
        let own = count(&|of| of.1 == from);
        if own >= per_source {
            return Err(Full::OfSource(per_source));
        }
        let free = (per_key - count(&|of| of.0 == key_id)).min(in_all.saturating_sub(places.taken.len()));
        if own > 0 && own >= free && places.taken.len() > own {
            return Err(Full::OfSource(own));
        }
        if places.taken.len() >= in_all {
            return Err(Full::InAll(in_all));
        }
        places.next += 1;
        let number = places.next;
        places.taken.insert(number, (key_id.into(), from));
        Ok(Place { places: self.places.clone(), number })
    }

    /// How many places there are.
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Places that are taken.
    pub fn taken(&self) -> usize {
        locked(&self.places).taken.len()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.places).taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sources_do_not_take_all_places_of_a_key() {
        let admission = Admission::new(Quota::SESSIONS);
        let mut held = Vec::new();
        let mut take = |key: &str, last: u8| {
            let before = held.len();
            held.extend(std::iter::from_fn(|| admission.enter(key, [192, 0, 2, last].into()).ok()));
            held.len() - before
        };
        // one alone has what a source may have, and each that comes later as much as it leaves to others
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|last| take("k", last)), [16, 8, 4, 2, 1, 1, 0]);
        assert_eq!([11, 12, 13].map(|last| take("l", last)), [16, 8, 4]);
    }

    #[test]
    fn limits_by_key_by_source_and_in_all() {
        let admission = Admission::new(Quota { in_all: 4, per_key: 3, per_source: 2 });
        let same = admission.clone();
        let enter = |key: &str, from: &str| same.enter(key, from.parse().unwrap());
        let first = enter("k", "192.0.2.1").unwrap();
        let _others = [enter("k", "2001:db8::1").unwrap(), enter("l", "2001:db8::2:1").unwrap()];
        assert_eq!(enter("m", "2001:db8::3").unwrap_err(), Full::OfSource(2));
        let _third = enter("k", "192.0.2.2").unwrap();
        assert_eq!(enter("k", "192.0.2.3").unwrap_err(), Full::OfKey(3));
        assert_eq!(enter("m", "192.0.2.3").unwrap_err(), Full::InAll(4));
        drop(first);
        assert_eq!(admission.taken(), 3);
        assert!(enter("m", "192.0.2.3").is_ok(), "and it is free again");
        assert_eq!(admission.taken(), 3);
    }
}
