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
//!
//! # Measurements
//! The hosts of a [`World`] carry the machines of `pathcast_measure::machine`, which measure over the scenario's paths beside
//! cross traffic and transfers. A machine sees its host's [`Clock`] only, which `[host.client]` and `[host.server]` of the
//! scenario set wrong, and gets its packets in the batches that they ask for. A clock without offset shows
//! [`Clock::EPOCH`] at the start. Payloads are filled with zeros, and a packet's IP header has 20 bytes, or 40 on a path of
//! IPv6 addresses. No packet is too large for a path but for IP itself.
//!
//! ```
//! use pathcast_base::Nanos;
//! use pathcast_measure::machine::{Action, Event, Machine, Reply};
//! use pathcast_scenario::Scenario;
//! use pathcast_sim::{Options, World};
//!
//! /// Measures one round trip, or sends back what comes.
//! #[derive(Default)]
//! struct Ping { asks: bool, sent: Nanos, wants: Option<Action> }
//!
//! impl Machine for Ping {
//!     fn handle(&mut self, _now: Nanos, event: Event<'_>) {
//!         let packet = Reply { path: 0, seq: 0, size: 1500, dscp: 0, ecn: 0, payload: Vec::new() };
//!         match event {
//!             Event::Started if self.asks => self.wants = Some(Action::Reply(packet)),
//!             Event::Sent { at, .. } => self.sent = at,
//!             Event::Received { at, .. } if self.asks => {
//!                 self.wants = Some(Action::Done((at - self.sent).0.to_be_bytes().to_vec()));
//!             }
//!             Event::Received { .. } => self.wants = Some(Action::Reply(packet)),
//!             _ => {}
//!         }
//!     }
//!     fn next(&mut self, _now: Nanos) -> Option<Action> {
//!         self.wants.take()
//!     }
//! }
//!
//! let text = r#"
//! link = [{ name = "wire", a = "client", b = "server", rate = "10Mbit", delay = "20ms" }]
//! path = [{ name = "p1", links = ["wire"] }]
//! "#;
//! let mut world = World::new(Scenario::parse(text, &[])?)?;
//! let client = Box::new(Ping { asks: true, ..Ping::default() });
//! let report = world.session(client, Box::new(Ping::default()), &[0], &Options::default(), |_progress| ())?;
//! // 1500 bytes take 1.2 ms at 10 Mbit/s
//! assert_eq!(report.result, 42_400_000u64.to_be_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod again;
mod agenda;
mod ahead;
mod amend;
mod apps;
mod carried;
mod clock;
mod closing;
mod conn;
mod error;
mod handshake;
mod host;
mod ledger;
mod machines;
mod many;
mod network;
mod observe;
mod packet;
mod report;
mod run;
mod series;
mod setup;
mod sim;
mod steer;
mod tcp;
mod trace;
mod transfer;
mod transmit;

pub use clock::Clock;
pub use error::SimError;
pub use ledger::{GroupLedger, Ledger};
pub use machines::{HostTally, MachineError, Session, SessionReport};
pub use many::{Continuation, Continued, Draw, draws, each, processors};
pub use report::{
    FlowReport, JSON_SCHEMA, LinkReport, ManagedReport, PacketReport, PageReport, Report, SubflowReport, TrafficReport,
};
pub use run::{Busy, Options, Outcome, PauseError, World, sampled, simulate};
pub use series::{FlowSample, Series, SubflowSample};
pub use sim::Stopped;
pub use trace::{Column, Table, Trace};
pub use transfer::{NET, Order, TransferError, Unfinished};
