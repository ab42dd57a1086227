//! The run's addresses by their places: those of a line may be others after a while, as of one that is dialled again. The
//! socket maker hears of them, and of which connections may begin from, in a page that it shares with us.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::lines::MOST;

/// Readings of what may be written at the same moment.
const READINGS: usize = 1000;

/// Our side of it.
#[derive(Debug, Default)]
pub(crate) struct Places {
    now: Vec<Option<IpAddr>>,
    /// Those that have lost their place, and from which a far end did not answer.
    silent: Vec<IpAddr>,
}

impl Places {
    pub fn of(paths: &[IpAddr]) -> Places {
        Places { now: paths.iter().take(MOST).copied().map(Some).collect(), silent: Vec::new() }
    }

    /// The run has these addresses from now on; each keeps its place. `silent`: as [`Places::silent`] has it.
    pub fn renew(&mut self, all: &[IpAddr], silent: u64) {
        for (place, of) in self.now.iter_mut().enumerate() {
            if let Some(gone) = of.take_if(|address| !all.contains(address))
                && silent >> place & 1 == 1
            {
                self.silent.push(gone);
            }
        }
        for &address in all {
            if self.now.contains(&Some(address)) {
                continue;
            }
            match self.now.iter().position(Option::is_none) {
                Some(free) => self.now[free] = Some(address),
                None if self.now.len() < MOST => self.now.push(Some(address)),
                None => {}
            }
        }
    }

    /// A bit for each place of an address that is none of these.
    fn barred(&self, allowed: &[IpAddr]) -> u64 {
        let barred = |of: &Option<IpAddr>| of.is_some_and(|address| !allowed.contains(&address));
        self.now.iter().enumerate().filter(|(_, of)| barred(of)).fold(0, |mask, (place, _)| mask | 1 << place)
    }

    /// From which addresses a far end did not answer, where the bits say so of their places.
    pub fn silent(&self, silent: u64) -> Vec<IpAddr> {
        let now = self.now.iter().enumerate().filter(|(place, _)| silent >> place & 1 == 1);
        let mut found = self.silent.clone();
        found.extend(now.filter_map(|(_, of)| *of).filter(|address| !self.silent.contains(address)));
        found
    }
}

/// What the socket maker hears of it.
pub(crate) struct Told {
    /// Odd while the rest is being written; 0: nothing was yet.
    version: AtomicU64,
    /// A bit for each place that connections may not begin from.
    barred: AtomicU64,
    /// IPv6 addresses, or those that stand for one of IPv4; zeros: none.
    own: [[AtomicU64; 2]; MOST],
}

impl Told {
    /// Connections may begin from these of the addresses. By one thread at a time.
    pub fn tell(&self, places: &Places, allowed: &[IpAddr]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (place, to) in self.own.iter().enumerate() {
            let number = match places.now.get(place).copied().flatten() {
                Some(IpAddr::V4(v4)) => u128::from(v4.to_ipv6_mapped()),
                Some(IpAddr::V6(v6)) => u128::from(v6),
                None => 0,
            };
            to[0].store((number >> 64) as u64, Ordering::Relaxed);
            to[1].store(number as u64, Ordering::Relaxed);
        }
        self.barred.store(places.barred(allowed), Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// The addresses by place, and the bits of those that are barred; none where that cannot be told now. No system call.
    pub fn read(&self) -> Option<([u128; MOST], u64)> {
        for _ in 0..READINGS {
            let version = self.version.load(Ordering::Acquire);
            if version == 0 {
                return None;
            }
            let half = |half: &AtomicU64| u128::from(half.load(Ordering::Relaxed));
            let own = self.own.each_ref().map(|[high, low]| half(high) << 64 | half(low));
            let barred = self.barred.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if version & 1 == 0 && self.version.load(Ordering::Relaxed) == version {
                return Some((own, barred));
            }
            std::hint::spin_loop();
        }
        None // whoever writes it was killed
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn told() -> Told {
        // SAFETY: zeros are valid, as in the shared page
        unsafe { std::mem::zeroed() }
    }

    fn address(n: u8) -> IpAddr {
        [192, 0, 2, n].into()
    }

    fn number(n: u8) -> u128 {
        0xffff_c000_0200 + u128::from(n)
    }

    #[test]
    fn a_new_address_takes_the_place_of_one_that_is_gone() {
        let (mut places, told) = (Places::of(&[address(1), address(2)]), told());
        assert_eq!(told.read(), None);
        let read = |places: &Places, allowed: &[IpAddr]| {
            told.tell(places, allowed);
            let (own, barred) = told.read().unwrap();
            (own[..3].to_vec(), barred)
        };
        assert_eq!(read(&places, &[address(1)]), (vec![number(1), number(2), 0], 0b10));
        places.renew(&[address(1), address(7)], 0b10);
        assert_eq!(read(&places, &[address(7)]), (vec![number(1), number(7), 0], 0b01));
        assert_eq!(places.silent(0b01), [address(2), address(1)]);
        // a place that is free bars nothing
        places.renew(&[address(7)], 0);
        assert_eq!(read(&places, &[address(7)]), (vec![0, number(7), 0], 0));
        places.renew(&[address(7), address(8), address(9)], 0);
        assert_eq!(read(&places, &[address(9)]), (vec![number(8), number(7), number(9)], 0b011));
        let many: Vec<_> = (10..30).map(address).collect();
        places.renew(&many, 0);
        assert_eq!((places.now.len(), places.now[0]), (MOST, Some(address(10))));
    }

    #[test]
    fn what_is_read_was_written_at_once() {
        let told = &told();
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for n in (1..=250).cycle().take(20_000) {
                    let address = IpAddr::from([n; 16]);
                    told.tell(&Places::of(&[address; MOST]), &[]);
                }
            });
            while !writer.is_finished() {
                if let Some((own, barred)) = told.read() {
                    assert!(own.iter().all(|one| *one == own[0] && one >> 64 == *one & u128::from(u64::MAX)));
                    assert_eq!(barred, (1 << MOST) - 1);
                }
            }
        });
    }
}
