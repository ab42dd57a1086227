//! Clocks of this machine, and the urgency of a thread.

use std::fs::{File, OpenOptions};
use std::io::Write;

use pathcast_base::Nanos;

/// Priority among real-time threads; any is above all ordinary ones.
const PRIORITY: libc::c_int = 10;

fn read(clock: libc::clockid_t) -> Nanos {
    // SAFETY: clock_gettime fills the timespec.
    let t = unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(clock, &mut t);
        t
    };
    Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Monotonic time of this machine.
pub fn clock() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread.
pub fn cpu_time() -> Nanos {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Asks for real-time scheduling, else for the best ordinary priority; true for the former.
pub fn become_urgent() -> bool {
    // SAFETY: these calls change only the calling thread's scheduling.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0, 0, 0);
        let parameter = libc::sched_param { sched_priority: PRIORITY };
        if libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) == 0 {
            return true;
        }
        libc::setpriority(libc::PRIO_PROCESS, 0, -19);
        false
    }
}

/// Keeps the processors from sleeping deeply while there is traffic: a sleeping one wakes late, above all a virtual one,
/// which its host then gives away. The kernel ends it with the file, however this process ends.
pub struct Awake {
    held: Option<File>,
    refused: bool,
    last_traffic: Nanos,
}

impl Awake {
    const LINGER: Nanos = Nanos::secs(2);

    /// Not held.
    pub fn new() -> Awake {
        Awake { held: None, refused: false, last_traffic: Nanos::ZERO }
    }

    /// There is traffic: hold.
    pub fn traffic(&mut self, now: Nanos) {
        self.last_traffic = now;
        if self.held.is_none() && !self.refused {
            let file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
            let held = file.and_then(|mut f| f.write_all(&0i32.to_ne_bytes()).map(|()| f));
            self.refused = held.is_err();
            self.held = held.ok();
        }
    }

    /// Lets go after a while without traffic; when to look again.
    pub fn rest(&mut self, now: Nanos) -> Option<Nanos> {
        self.held.as_ref()?;
        let until = self.last_traffic + Self::LINGER;
        if now >= until {
            self.held = None;
            return None;
        }
        Some(until)
    }

    /// Whether this machine lets us.
    pub fn allowed(&self) -> bool {
        !self.refused
    }
}
