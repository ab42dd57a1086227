//! How often the kernel called a controller's programs, and how long they took: its own statistics of BPF programs.

use std::os::fd::{FromRawFd, OwnedFd};

use libbpf_sys::{BPF_STATS_RUN_TIME, bpf_enable_stats, bpf_obj_get_info_by_fd, bpf_prog_get_fd_by_id, bpf_prog_info};
use pathcast_kernel::Loaded;

/// Calls and nanoseconds of one program.
#[derive(Clone, Debug)]
pub struct Calls {
    pub name: String,
    pub calls: u64,
    pub ns: u64,
}

/// Counts while it lives. Counting costs each call some 50 ns, which are not in what is counted.
pub struct Statistics {
    _on: OwnedFd,
}

impl Statistics {
    pub fn start() -> Option<Statistics> {
        // SAFETY: a call with a number; it returns a descriptor of our own, or a negative number
        let fd = unsafe { bpf_enable_stats(BPF_STATS_RUN_TIME) };
        // SAFETY: as above
        (fd >= 0).then(|| Statistics { _on: unsafe { OwnedFd::from_raw_fd(fd) } })
    }
    pub fn of(&self, loaded: &Loaded) -> Vec<Calls> {
        loaded.costs().iter().map(|cost| read(cost.id, &cost.name)).collect()
    }
}

fn read(id: u32, name: &str) -> Calls {
    // SAFETY: a struct of integers and pointers, for which all zero is valid
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as u32;
    // SAFETY: a call with a number, then an open descriptor and a struct of as many bytes as `length` says
    unsafe {
        let fd = bpf_prog_get_fd_by_id(id);
        assert!(fd >= 0, "program {id} is loaded");
        let _fd = OwnedFd::from_raw_fd(fd);
        assert_eq!(bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut length), 0);
    }
    Calls { name: name.into(), calls: info.run_cnt, ns: info.run_time_ns }
}
