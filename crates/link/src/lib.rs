//! When a packet leaves a link and whether it is dropped. Pure: no clock, no I/O; time is an argument.
//!
//! A [`Link`] is one direction of one link and owns the packets that travel on it, a [`DeferredLink`] is one whose
//! queue decides when the line is free who goes next, a [`Wire`] is either; a [`Mesh`] is a group of links with the routes over them. The simulator drives links in virtual time, the emulator in real time.
//!
//! Rules that every driver may rely on:
//! - at equal times departures come before arrivals, and arrivals of cross traffic before real ones;
//! - a link never reorders, a deferred one not within a flow, unless it has `reorder`;
//! - the same seed, names and calls give the same results on every machine.

mod bucket;
mod check;
mod codel;
mod counters;
mod cross;
mod deferred;
mod discipline;
mod flight;
mod fq_codel;
mod gather;
mod jitter;
mod ledger;
mod line;
mod link;
mod loss;
mod managed;
mod mesh;
mod params;
mod pie;
mod policer;
mod red;
mod round;
mod special;
mod trace;
mod wire;

pub use check::ParamError;
pub use counters::{Cause, Counters, CrossCounters, Drops, Tally};
pub use cross::CrossId;
pub use deferred::{DeferredLink, Offered};
pub use ledger::LinkLedger;
pub use link::{Link, Refused, Released};
pub use managed::{Codel, FqCodel, Pie};
pub use mesh::{LinkId, Mesh, MeshError, Outcome, RouteId, Transit};
pub use params::{
    Aggregation, Bucket, Cross, Fair, GilbertElliott, Jitter, Loss, Params, Policer, Queue, Red, Reorder,
};
pub use trace::{Format, Schedule, Trace};
pub use wire::{Tag, Wire};
