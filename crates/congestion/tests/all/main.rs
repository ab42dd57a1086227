//! The controllers' tests, one program: it is linked once.

mod adaptive_start;
mod background;
mod bbr3;
mod bpf;
mod coupled;
mod frozen;
mod inline;
mod random;
mod register;
mod single;
mod slow_start;
mod world;
