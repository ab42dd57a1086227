//! Congestion controllers: plain C headers, integers only, that decide how much a flow may send, and a safe face of them.
//!
//! A controller is one header in `src/c`; `flow.h` is the contract. The same text runs here, for a simulator, and in the
//! kernel. [`controllers`] lists them with their parameters; an [`Instance`] is one flow's controller, driven through a
//! [`Flow`]; a [`Connection`] lets the subflows of an MPTCP connection hear of each other.
//!
//! ```
//! use pathcast_congestion::{Ack, Flow, Instance, Params, controller};
//!
//! let mut flow = Flow::new(1448, 10);
//! let mut reno = Instance::new(&Params::new(controller("reno")?));
//! reno.init(&mut flow);
//! reno.grow(&mut flow, &Ack::new(2, 40_000));
//! assert_eq!(flow.cwnd, 12);
//! # Ok::<(), pathcast_congestion::CongestionError>(())
//! ```

mod connection;
mod error;
mod flow;
mod instance;
mod raw;
mod register;
mod replay;

pub use connection::Connection;
pub use error::CongestionError;
pub use flow::{Ack, Event, Flow, Group, INFINITE, NOBODY, PEERS, Peer, State, WINDOW_MAX, WORDS};
pub use instance::Instance;
pub use register::{Hooks, Info, Param, Params, controller, controllers, parse_value};
pub use replay::{ANSWERS, COLUMNS, ReplayError, replay};
