//! The language border: the C register as it lies in memory.

use std::ffi::{c_char, c_void};

use crate::flow::{Ack, Flow};

#[repr(C)]
pub(crate) struct RawParam {
    pub name: *const c_char,
    pub def: u32,
    pub lo: u32,
    pub hi: u32,
    pub pad: u32,
    pub text: *const c_char,
    pub source: *const c_char,
}

type Hook = unsafe extern "C" fn(*mut Flow, *mut c_void, *const c_void);
type AckHook = unsafe extern "C" fn(*mut Flow, *const Ack, *mut c_void, *const c_void);
type WindowHook = unsafe extern "C" fn(*mut Flow, *mut c_void, *const c_void) -> u32;
type EventHook = unsafe extern "C" fn(*mut Flow, u32, *mut c_void, *const c_void);

#[repr(C)]
pub(crate) struct RawController {
    pub name: *const c_char,
    pub kernel: *const c_char,
    pub paper: *const c_char,
    pub basis: *const c_char,
    pub hooks: u32,
    pub state_size: u32,
    pub n_params: u32,
    pub pad: u32,
    pub params: *const RawParam,
    pub init: Hook,
    pub ack: AckHook,
    pub grow: AckHook,
    pub ssthresh: WindowHook,
    pub undo: WindowHook,
    pub event: EventHook,
    pub send: Hook,
    pub release: Hook,
}

// SAFETY: the register is constant data: strings, numbers and functions without globals.
unsafe impl Sync for RawController {}

// SAFETY: the types are those of `register.c`; `sizes_agree` checks their sizes before the first use.
unsafe extern "C" {
    pub(crate) static flow_sizes: [u32; 4];
    pub(crate) static flow_register_len: u32;
    /// `flow_register_len` rows
    pub(crate) static flow_register: [*const RawController; 0];
}

/// Sizes of the structs on both sides: C's, Rust's.
pub(crate) fn sizes() -> ([u32; 4], [u32; 4]) {
    let ours = [size_of::<Flow>(), size_of::<Ack>(), size_of::<RawParam>(), size_of::<RawController>()];
    // SAFETY: constant data of four u32
    (unsafe { flow_sizes }, ours.map(|size| size as u32))
}
