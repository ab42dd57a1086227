//! Runs any program, unchanged, with its TCP under a congestion controller and, where asked, over Multipath TCP.
//!
//! [`Launch::run`] does all of it:
//! - The program runs in a version-2 cgroup of its own, to which an eBPF program is attached that puts every connection
//!   of the program and its children under the controller, and counts their bytes.
//! - For Multipath TCP a seccomp filter stops each socket(2) for TCP, and a socket maker answers it with a socket of
//!   Multipath TCP: for static programs and bare system calls too. Calls for anything else never stop.
//! - The program runs as the user who called sudo, in our process group, with our streams; its exit status is the run's.
//!   Another user's cannot type into our terminal: a second filter refuses what does that.
//! - Where a run has several lines connect(2) waits for that process too: what does not answer over the line of its route
//!   within 250 ms is asked over the others, and begins over the first that answers.
//!
//! - Over a network of switches that are steered the run makes the further subflows itself, one for each path. connect(2) waits
//!   until the switches have been told of the first.
//!
//! What a run makes is named by [`Launch::made`] before it begins, so that [`remove`] and [`remove_endpoint`] can take
//! away what a killed one has left, and [`end`] end it.
//!
//! # Limits
//! - The controller acts where bytes are sent. A program that downloads is under the control of the far end.
//! - Programs that ask for socket options which Multipath TCP does not have (TCP_ULP, TCP_MD5SIG, TCP_REPAIR) get an
//!   error from them under `mptcp`. Programs that use seccomp user notification themselves cannot have a second listener.
//! - Under `mptcp` socket(2) can be interrupted (EINTR) by a signal whose handler was installed without SA_RESTART.
//! - In a run inside of a run the outer controller prevails, and Multipath TCP can be asked for only once.
//! - What connects without connect(2), by sendto(MSG_FASTOPEN) or io_uring, begins over the line of its route.
//! - A program without room for another descriptor gets the kernel's own EMFILE. 32-bit programs stay with plain TCP.

mod account;
mod address;
mod beginnings;
mod cgroup;
mod control;
mod counters;
mod ending;
mod endpoints;
mod error;
mod filter;
mod forked;
mod launch;
mod lines;
mod listener;
mod live;
mod maker;
mod near;
mod orders;
mod output;
mod places;
mod program;
mod race;
mod report;
mod signals;
mod spawn;
mod steered;
mod stop;
mod task;
mod terminal;
mod typing;
mod wait;
mod waiting;
mod witness;

pub use cgroup::{end, remove};
pub use endpoints::{Stay, remove_endpoint};
pub use error::LaunchError;
pub use launch::{Launch, Made, Outcome};
pub use live::Live;
pub use output::open_report;
pub use report::{PathUse, Report};
pub use steered::Steered;
