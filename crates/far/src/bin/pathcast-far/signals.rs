//! The signals that end the program. One thread takes them, whatever the others wait for.

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

const NUMBERS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// What comes so soon after the first one is passed over, so that the end can be told.
const IMPATIENT: Duration = Duration::from_secs(1);

/// Whether there is a far end to stop; the thread of signals ends the program itself where there is none.
pub struct Begun(&'static Mutex<bool>);

impl Begun {
    /// From here on signals are for who waits for them.
    pub fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// Takes the signals from now on; call it before there is another thread. Ignored ones (nohup) stay so.
///
/// The first one is sent to `ended`; before anything has begun, `early` is called instead and ends the program.
pub fn take(ended: mpsc::Sender<Option<i32>>, early: impl FnOnce(i32) + Send + 'static) -> Begun {
    let begun: &'static Mutex<bool> = Box::leak(Box::default());
    let taken: Vec<i32> = NUMBERS.into_iter().filter(|number| !is_ignored(*number)).collect();
    let set = set_of(&taken);
    mask(libc::SIG_BLOCK, &set);
    let mut early = Some(early);
    let work = move || {
        let mut first: Option<Instant> = None;
        loop {
            let mut number = 0;
            // SAFETY: both point to values that live
            if taken.is_empty() || unsafe { libc::sigwait(&set, &mut number) } != 0 {
                return;
            }
            match first {
                Some(at) if at.elapsed() < IMPATIENT => {}
                Some(_) => at_once(number),
                None => {
                    first = Some(Instant::now());
                    let begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
                    if !*begun && let Some(early) = early.take() {
                        early(number); // with the lock, so that nothing begins meanwhile
                    }
                    let _ = ended.send(Some(number));
                }
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(work).expect("the first thread of a process");
    Begun(begun)
}

/// Ends the process as the signal does that nobody takes.
fn at_once(number: i32) {
    // SAFETY: SIG_DFL is a valid disposition; the calls touch nothing else
    unsafe { libc::signal(number, libc::SIG_DFL) };
    mask(libc::SIG_UNBLOCK, &set_of(&[number]));
    // SAFETY: as above
    unsafe { libc::raise(number) };
}

fn is_ignored(number: i32) -> bool {
    // SAFETY: a zeroed action is a valid one, and without a new one the old is only read
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(number, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

fn set_of(numbers: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset makes it valid, sigaddset takes valid signals
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        numbers.iter().for_each(|number| {
            libc::sigaddset(&mut set, *number);
        });
        set
    }
}

fn mask(how: i32, set: &libc::sigset_t) {
    // SAFETY: the set is valid, the old one is not wanted
    unsafe { libc::pthread_sigmask(how, set, ptr::null_mut()) };
}
