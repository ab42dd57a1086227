//! Who may measure: limits on sessions, and the queue for the link in the order of arrival.

use std::collections::VecDeque;

use pathcast_base::Nanos;

use super::cookie::VALID;
use super::limits::MeasureLimits;
use super::messages::{Denial, Denied};

/// Sessions that are over and whose cookies may still be good.
const REMEMBERED: usize = 4096;

/// A session as far as admission is concerned.
#[derive(Clone, Debug)]
struct Guest {
    session: u64,
    key_id: String,
    source: Vec<u8>,
    measures: bool,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// In the order of arrival.
    guests: VecDeque<Guest>,
    /// Sessions that are over, and when they ended.
    gone: VecDeque<(u64, Nanos)>,
}

impl Admission {
    /// Lets a session in: it waits until [`Admission::promote`] names it.
    pub fn enter(
        &mut self,
        limits: &MeasureLimits,
        session: u64,
        key_id: &str,
        source: Vec<u8>,
        paths: u8,
    ) -> Result<(), Denied> {
        let of_key = self.guests.iter().filter(|guest| guest.key_id == key_id).count();
        let of_source = self.guests.iter().filter(|guest| guest.source == source).count();
        let rules = [
            (Denial::Paths, usize::from(paths), usize::from(limits.paths) + 1),
            (Denial::KeySessions, of_key, limits.sessions_per_key),
            (Denial::SourceSessions, of_source, limits.sessions_per_source),
            (Denial::Sessions, self.guests.len(), limits.sessions),
        ];
        if let Some(&(denial, _, limit)) = rules.iter().find(|(_, count, limit)| count >= limit) {
            let limit = if denial == Denial::Paths { limits.paths.into() } else { limit as u64 };
            return Err(Denied { denial, limit });
        }
        self.guests.push_back(Guest { session, key_id: key_id.into(), source, measures: false });
        Ok(())
    }

    /// The next session that may measure now.
    pub fn promote(&mut self, limits: &MeasureLimits) -> Option<u64> {
        if self.measuring() >= limits.measuring {
            return None;
        }
        let guest = self.guests.iter_mut().find(|guest| !guest.measures)?;
        guest.measures = true;
        Some(guest.session)
    }

    pub fn measuring(&self) -> usize {
        self.guests.iter().filter(|guest| guest.measures).count()
    }

    /// Sessions that wait, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = u64> {
        self.guests.iter().filter(|guest| !guest.measures).map(|guest| guest.session)
    }

    /// How many wait before a session that waits.
    pub fn ahead(&self, session: u64) -> usize {
        self.waiting().take_while(|&waits| waits != session).count()
    }

    /// A session is over.
    pub fn leave(&mut self, now: Nanos, session: u64) {
        self.guests.retain(|guest| guest.session != session);
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

    fn limits() -> MeasureLimits {
        MeasureLimits { sessions: 4, sessions_per_key: 3, sessions_per_source: 2, ..MeasureLimits::default() }
    }

    fn denial(admission: &mut Admission, session: u64, key: &str, source: u8) -> Option<(Denial, u64)> {
        let entered = admission.enter(&limits(), session, key, vec![source], 1);
        entered.err().map(|denied| (denied.denial, denied.limit))
    }

    #[test]
    fn limits_by_key_by_source_and_in_all() {
        let mut a = Admission::default();
        assert_eq!(denial(&mut a, 1, "k", 1), None);
        assert_eq!(denial(&mut a, 2, "k", 1), None);
        assert_eq!(denial(&mut a, 3, "k", 1), Some((Denial::SourceSessions, 2)));
        assert_eq!(denial(&mut a, 3, "k", 2), None);
        assert_eq!(denial(&mut a, 4, "k", 3), Some((Denial::KeySessions, 3)));
        assert_eq!(denial(&mut a, 4, "l", 3), None);
        assert_eq!(denial(&mut a, 5, "m", 4), Some((Denial::Sessions, 4)));
        let many = a.enter(&limits(), 5, "m", vec![4], 17);
        assert_eq!(many, Err(Denied { denial: Denial::Paths, limit: 16 }));
        a.leave(Nanos::secs(1), 1);
        assert_eq!(denial(&mut a, 5, "m", 4), None);
    }

    #[test]
    fn first_come_first_served() {
        let mut a = Admission::default();
        for session in 1..=3 {
            a.enter(&MeasureLimits::default(), session, "k", vec![], 1).unwrap();
        }
        let limits = MeasureLimits::default();
        assert_eq!((a.promote(&limits), a.promote(&limits), a.ahead(2), a.ahead(3)), (Some(1), None, 0, 1));
        a.leave(Nanos(0), 2);
        assert_eq!(a.ahead(3), 0);
        a.leave(Nanos(0), 1);
        assert_eq!((a.promote(&limits), a.measuring()), (Some(3), 1));
        assert!(a.is_gone(1) && !a.is_gone(3));
        a.leave(VALID + Nanos(1), 3);
        assert!(!a.is_gone(1) && a.is_gone(3));
    }
}
