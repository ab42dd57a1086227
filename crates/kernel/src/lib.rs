//! Congestion controllers in the Linux kernel: eBPF programs and what loads them.
//!
//! A controller is a set of functions that the kernel's TCP calls (`struct_ops`). Those of `pathcast-congestion` run here
//! with the same text as in the simulator, coupled across the subflows of the kernel's Multipath TCP: [`Loaded`] is one,
//! [`Request`] says how to load it, [`FlowView`] is what it does for one flow. [`HookLog`] is another, that behaves as
//! Reno and writes down every call: with it a test pins the order of calls that `flow.h` promises.
//!
//! The programs are compiled when this crate is built, if clang is there; [`ready`] says what is missing.
//!
//! ```no_run
//! use pathcast_congestion::{Params, controller};
//! use pathcast_kernel::Loaded;
//!
//! let mut params = Params::new(controller("imtcp_bg")?);
//! params.set("delta", 1300)?;
//! let loaded = Loaded::load("pc_imtcpbg", &params, None)?;
//! for flow in loaded.flows()? {
//!     println!("{} -> {}: {} packets, {}", flow.local, flow.remote, flow.cwnd, flow.phase);
//! }
//! loaded.set(&[("delta", 1250)])?; // live
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cost;
mod error;
mod flows;
mod hook_log;
mod loaded;
mod maps;
mod object;
mod pins;
mod record;

pub use cost::ProgramCost;
pub use error::KernelError;
pub use flows::{Counts, FlowView, PathSum};
pub use hook_log::HookLog;
pub use loaded::{Loaded, Request, controllers_in_kernel, free_name};
pub use object::{ready, registered};
pub use pins::{Pinned, pin_root, pin_root_if_any, pinned, remove};
pub use record::{CaEvent, CaState, Hook, Record};
