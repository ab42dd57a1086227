//! The links' tests, one program: it is linked once.

mod closed_forms;
mod common;
mod fair;
mod fair_model;
mod fair_properties;
mod gathering;
mod losses;
mod managed;
mod managed_models;
mod mesh;
mod model;
mod properties;
mod reference;
mod reorder;
mod traces;
