//! A packet-level simulator of TCP and Multipath TCP.
//!
//! Links come from `crates/link` and congestion controllers from `crates/congestion`: the emulator drives the same links,
//! and the kernel runs the same controllers. [`simulate`] runs a scenario; a [`World`] stands and carries out one
//! transfer after another. Everything is integers and seeded streams: the same scenario gives the same results on every
//! machine.
//!
//! ```
//! use pathcast_scenario::Scenario;
//! use pathcast_sim::{Options, simulate};
//!
//! let text = r#"
//! link = [{ name = "wire", a = "client", b = "server", rate = "10Mbit", delay = "20ms" }]
//! path = [{ name = "p1", links = ["wire"] }]
//! flow = [{ name = "bulk", paths = ["p1"], bytes = "1MB" }]
//! "#;
//! let outcome = simulate(Scenario::parse(text, &[])?, &Options::default())?;
//! assert_eq!(outcome.report.flows[0].bytes, 1_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agenda;
mod apps;
mod conn;
mod error;
mod handshake;
mod host;
mod network;
mod observe;
mod packet;
mod report;
mod run;
mod setup;
mod sim;
mod tcp;
mod trace;
mod transmit;
mod wire;

pub use error::SimError;
pub use report::{FlowReport, JSON_SCHEMA, LinkReport, PacketReport, PageReport, Report, SubflowReport, TrafficReport};
pub use run::{Options, Outcome, World, simulate};
pub use sim::Stopped;
pub use trace::{Column, Table, Trace};
