//! The simulator's tests, one program: it is linked once.

mod bbr3;
mod closed_forms;
mod closing;
mod common;
mod conservation;
mod copy;
mod coupled;
mod determinism;
mod ecn;
mod fused_link;
mod imtcp;
mod kinds;
mod ledger;
mod machines;
mod measure;
mod mptcp;
mod reordering;
mod scripted;
mod series;
mod signatures_background;
mod signatures_multipath;
mod steering;
mod timers;
mod transfers;
