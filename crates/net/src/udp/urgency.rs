//! What makes a thread leave on time: real-time scheduling, processors that do not sleep deeply, exact timers. Each is tried
//! and done without where it is not permitted. A thread that asks for it is one of our own, whose scheduling ends with it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

use pathcast_base::Nanos;

/// Priority among real-time threads: above all ordinary ones, and below those of an emulated network.
const PRIORITY: libc::c_int = 5;
/// How long the urgency lasts after it was last needed.
const LINGER: Nanos = Nanos::secs(1);

/// The urgency of the calling thread.
pub(crate) struct Urgency {
    wanted: bool,
    /// While it is urgent: what keeps the processors awake as long as it is open, if that is permitted.
    held: Option<Option<File>>,
    needed: Nanos,
}

impl Urgency {
    /// Not urgent yet; never, if it is not wanted.
    pub fn new(wanted: bool) -> Urgency {
        // SAFETY: changes only this thread's timers
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0, 0, 0) };
        Urgency { wanted, held: None, needed: Nanos::ZERO }
    }

    /// Something is to be measured at `now`.
    pub fn need(&mut self, now: Nanos) {
        self.needed = now;
        if self.wanted && self.held.is_none() {
            schedule(libc::SCHED_FIFO, PRIORITY);
            let file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
            self.held = Some(file.and_then(|mut f| f.write_all(&0i32.to_ne_bytes()).map(|()| f)).ok());
        }
    }

    /// Lets go if nothing was measured for a second.
    pub fn rest(&mut self, now: Nanos) {
        if self.held.is_some() && now.saturating_sub(self.needed) > LINGER {
            self.held = None;
            schedule(libc::SCHED_OTHER, 0);
        }
    }
}

fn schedule(policy: libc::c_int, priority: libc::c_int) {
    // SAFETY: changes only this thread; where it is refused the thread stays as it is. The kernel's own call and parameter,
    // the priority alone: musl's function refuses always
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
}

/// Sleeps until one of `polled` is ready, for at most `time`.
pub(crate) fn sleep(polled: &mut [libc::pollfd], time: Nanos) {
    let time = Duration::from_nanos(time.0);
    let time = libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos() as _ };
    // SAFETY: the slice and the timespec outlive the call; whatever it returns, the caller looks for itself
    unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as _, &time, std::ptr::null()) };
}
