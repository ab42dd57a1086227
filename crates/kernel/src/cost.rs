//! What a program costs the kernel's verifier, and how large it is.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::Object;

/// One program of a loaded object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// Its number in the kernel.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Instructions that the verifier went through; it gives up at a million.
    pub steps: u32,
    /// Instructions of the program.
    pub instructions: u32,
    /// Bytes of machine code.
    pub machine_bytes: u32,
}

impl ProgramCost {
    /// Of the programs that were loaded, as far as the kernel tells.
    pub(crate) fn of(object: &Object) -> Vec<ProgramCost> {
        let info = |fd: std::os::fd::BorrowedFd<'_>| {
            // SAFETY: a struct of integers and pointers, for which all zero is valid
            let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
            let mut length = size_of_val(&info) as u32;
            // SAFETY: an open descriptor, and a struct of as many bytes as `length` says
            let failed =
                unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
            // SAFETY: the kernel ends the name with a 0 within its 16 bytes
            let name = || unsafe { CStr::from_ptr(info.name.as_ptr()) }.to_string_lossy().into_owned();
            (failed == 0).then(|| ProgramCost {
                id: info.id,
                name: name(),
                steps: info.verified_insns,
                instructions: info.xlated_prog_len / 8,
                machine_bytes: info.jited_prog_len,
            })
        };
        object.progs().filter_map(|program| info(program.as_fd())).collect()
    }
}
