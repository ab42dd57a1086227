//! Clocks of this machine, and the urgency of a thread.

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
