//! The far end and the three verbs of the main job on real sockets: a TCP transfer over one path, a small MPTCP probe, an
//! MPTCP transfer over all or chosen paths; with bytes, RTT, window and retransmissions of every subflow.
//!
//! Every socket comes from a [`SocketMaker`], so that the same code runs on a host and inside network namespaces. Blocking
//! calls with deadlines, no runtime. The protocol itself is `pathcast_session`.

mod client;
mod connect;
mod control;
mod diag;
mod error;
mod events;
mod forward;
mod info;
mod interfaces;
mod join_look;
mod joins;
mod keeper;
mod look;
mod maker;
mod netlink;
mod path_manager;
mod paths;
mod payload;
mod places;
mod poll;
mod progress;
mod race;
mod raw;
mod route;
mod server;
mod steering;
mod subflows;
mod switch;
mod transfer;
pub mod udp;
mod warnings;

pub use client::Client;
pub use error::{NetError, Untold};
pub use forward::Forward;
pub use interfaces::InterfaceAddress;
pub use join_look::Joined;
pub use keeper::{Keeper, Kept};
pub use look::{Ecn, LookPath};
pub use maker::{Family, HostSockets, SocketMaker};
pub use path_manager::{PathManagerLimits, limits, set_limits};
pub use paths::{PathSurvey, Unusable, paths};
pub use payload::entropy;
pub use places::{Fabric, FlowEnds, Transport};
pub use progress::Progress;
pub use server::{EventCallback, Server, ServerConfig, ServerEvent};
pub use switch::{setting_lock, user_setting};
pub use transfer::TransferOptions;
pub use warnings::Warnings;

pub use pathcast_base::{PathAddr, PathManagerKind, Protocol, SubflowReport, TransferReport};
pub use pathcast_session::{Counters, DEFAULT_PORT, Key, KeyError, Limits, Note};
