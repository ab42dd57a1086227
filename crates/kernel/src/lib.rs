//! Congestion controllers in the Linux kernel: eBPF programs and what loads them.
//!
//! A controller is a set of functions that the kernel's TCP calls (`struct_ops`). So far there is one, [`HookLog`]: it
//! behaves as Reno and writes down every call. With it a test pins the order of calls that `flow.h` promises to the
//! controllers of `pathcast-congestion`.
//!
//! The programs are compiled when this crate is built, if clang is there; [`ready`] says what is missing.

mod error;
mod hook_log;
mod object;
mod record;

pub use error::KernelError;
pub use hook_log::HookLog;
pub use object::ready;
pub use record::{CaEvent, CaState, Hook, Record};
