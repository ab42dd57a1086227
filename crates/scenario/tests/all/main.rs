//! The scenario format's tests, one program: it is linked once.

mod common;
mod hosts;
mod manual;
mod ranges;
mod refusals;
mod robust;
mod scenarios;
mod sets;
mod switches;
mod topologies;
mod traces;
