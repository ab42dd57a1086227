//! The clock of a measuring session: CLOCK_REALTIME where it began, carried on by CLOCK_MONOTONIC, so that it never goes
//! back and no step of the system's clock reaches a measurement. The kernel stamps packets with CLOCK_REALTIME; such stamps
//! are mapped onto it.

use std::mem::MaybeUninit;

use pathcast_base::Nanos;
use pathcast_measure::ClockState;
use sha2::{Digest, Sha256};

/// Readings from which the best is taken.
const READINGS: usize = 32;
/// A kernel stamp that is older than this when it is read tells of a step of the system's clock.
const OLDEST: i64 = 60_000_000_000;
/// Sessions whose clocks began within the same such part of a second from CLOCK_MONOTONIC have the same clock [ns].
const SAME: i64 = 1_000_000;

/// A clock that goes on evenly from the time of day at which it was started [ns since 1970].
#[derive(Clone, Debug)]
pub struct SessionClock {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC when it was started [ns].
    base: i64,
    /// The same now: another one only after a step of the system's clock.
    offset: i64,
}

impl SessionClock {
    /// Begins now.
    pub fn start() -> SessionClock {
        let base = measured();
        SessionClock { base, offset: base }
    }

    /// What time it is.
    pub fn now(&self) -> Nanos {
        Nanos((read(libc::CLOCK_MONOTONIC) + self.base) as u64)
    }

    /// Looks whether the system's clock was stepped since the last look.
    pub(crate) fn refresh(&mut self) {
        let (least, most) = bracket();
        if !(least..=most).contains(&self.offset) {
            self.offset = measured();
        }
    }

    /// Was the system's clock stepped since the start, as of the last look?
    pub(crate) fn is_stale(&self) -> bool {
        self.offset.abs_diff(self.base) > SAME as u64
    }

    /// A kernel's stamp [ns of CLOCK_REALTIME] on this clock; none if that makes no sense: the system's clock was stepped
    /// after it was taken.
    pub(crate) fn of_kernel(&self, stamp: i64) -> Option<Nanos> {
        let now = read(libc::CLOCK_MONOTONIC);
        let age = now - (stamp - self.offset);
        (0..OLDEST).contains(&age).then(|| Nanos((now - age + self.base) as u64))
    }

    /// What a measurement says of it to the other end: whether both have the same clock, and how right it is. The digest is
    /// of the boot and of this clock's beginning; a clock that began before a step of the system's is another one, and not right.
    pub fn state(&self) -> ClockState {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok();
        let digest = boot.map(|id| {
            let offset = (self.base + SAME / 2).div_euclid(SAME);
            Sha256::new().chain_update(b"pathcast clock").chain_update(id).chain_update(offset.to_be_bytes()).finalize()
        });
        // SAFETY: no modes are set, so that the call only fills the structure, for which zeros are valid
        let (state, timex) = unsafe {
            let mut timex: libc::timex = std::mem::zeroed();
            (libc::adjtimex(&mut timex), timex)
        };
        ClockState {
            host: digest.map(Into::into),
            synchronised: state >= 0 && timex.status & libc::STA_UNSYNC == 0 && !self.is_stale(),
            max_error: Nanos::micros(timex.maxerror.max(0) as u64),
        }
    }
}

/// The bounds of CLOCK_REALTIME less CLOCK_MONOTONIC that one reading gives [ns].
fn bracket() -> (i64, i64) {
    let before = read(libc::CLOCK_MONOTONIC);
    let time = read(libc::CLOCK_REALTIME);
    let after = read(libc::CLOCK_MONOTONIC);
    (time - after, time - before)
}

fn measured() -> i64 {
    let narrowest = (0..READINGS).map(|_| bracket()).min_by_key(|(least, most)| most - least);
    let (least, most) = narrowest.expect("there are readings");
    least + (most - least) / 2
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: fills the structure; every kernel has these clocks
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    nanos(&time)
}

pub(crate) fn nanos(time: &libc::timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_time_of_day_and_goes_on() {
        let clock = SessionClock::start();
        let before = read(libc::CLOCK_REALTIME);
        let mut last = clock.now();
        let after = read(libc::CLOCK_REALTIME);
        assert!((before - 1_000_000..after + 1_000_000).contains(&(last.0 as i64)));
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn kernel_stamps_are_mapped_and_steps_of_the_clock_found() {
        let mut clock = SessionClock::start();
        let before = clock.now();
        let stamp = read(libc::CLOCK_REALTIME);
        let mapped = clock.of_kernel(stamp).unwrap();
        assert!(mapped.0.abs_diff(before.0) < 1_000_000_000);
        // as if the system's clock had been set back by an hour since the start
        clock.offset += 3600 * 1_000_000_000;
        assert_eq!(clock.of_kernel(stamp), None);
        assert!(clock.is_stale() && !clock.state().synchronised);
        clock.refresh();
        assert!(!clock.is_stale());
        assert!(clock.of_kernel(stamp).unwrap().0.abs_diff(mapped.0) < 1_000_000);
    }

    #[test]
    fn sessions_of_one_host_have_one_clock_and_others_do_not() {
        let clock = SessionClock::start();
        let host = clock.state();
        assert!(host.host.is_some());
        assert_eq!(clock.state().host, host.host);
        let stepped = SessionClock { base: clock.base + 1_000_000_000, ..clock };
        assert_ne!(stepped.state().host, host.host);
    }
}
