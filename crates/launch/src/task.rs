//! A task of the program as the socket maker sees it: its files in /proc, its descriptors. Only system calls, no
//! allocation, as in `forked`.

use std::mem::zeroed;
use std::os::fd::RawFd;

const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;
const KCMP_FILES: libc::c_int = 2;

/// Room for `/proc/<number>/ns/net` and its 0.
pub(crate) struct Path {
    pub bytes: [u8; 48],
    /// Length of `/proc/<number>`.
    stem: usize,
}

impl Path {
    pub fn of(task: u32) -> Path {
        let mut digits = [0u8; 10];
        let (mut n, mut rest) = (0, task);
        loop {
            digits[n] = b'0' + (rest % 10) as u8;
            n += 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let mut path = Path { bytes: [0; 48], stem: 6 + n };
        for (to, from) in path.bytes.iter_mut().zip(b"/proc/".iter().chain(digits[..n].iter().rev())) {
            *to = *from;
        }
        path
    }

    pub fn below(mut self, tail: &[u8]) -> Path {
        for (to, from) in self.bytes[self.stem..47].iter_mut().zip(tail) {
            *to = *from;
        }
        self
    }

    pub fn stat(&self) -> Option<libc::stat> {
        // SAFETY: a string with a final zero, and a place for the answer
        unsafe {
            let mut answer: libc::stat = zeroed();
            (libc::stat(self.bytes.as_ptr().cast(), &mut answer) == 0).then_some(answer)
        }
    }
}

/// The task's descriptor, here too; negative when it cannot be had.
pub(crate) fn take(task: u32, number: RawFd) -> RawFd {
    // SAFETY: plain numbers
    take_by(task, number, |id, flags| unsafe { libc::syscall(libc::SYS_pidfd_open, id, flags) } as RawFd)
}

fn take_by(task: u32, number: RawFd, open: impl Fn(u32, libc::c_uint) -> RawFd) -> RawFd {
    let mut process = open(task, PIDFD_THREAD);
    if process < 0 {
        // before Linux 6.9 by the first thread, unless it has descriptors of its own
        let first = first_thread(task);
        // SAFETY: plain numbers
        if unsafe { libc::syscall(libc::SYS_kcmp, task, first, KCMP_FILES, 0, 0) } > 0 {
            return -1;
        }
        process = open(first, 0);
    }
    if process < 0 {
        return -1;
    }
    // SAFETY: plain numbers; a descriptor that is ours
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_getfd, process, number, 0) as RawFd;
        libc::close(process);
        fd
    }
}

/// The first thread of the process that the task is of; 0 where it cannot be told.
fn first_thread(task: u32) -> u32 {
    const KEY: &[u8] = b"\nTgid:\t";
    let path = Path::of(task).below(b"/status");
    let mut text = [0u8; 512]; // it is the fourth line
    // SAFETY: a string with a final zero, and a place as long as is said
    let read = unsafe {
        let file = libc::open(path.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        let read = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        read.max(0) as usize
    };
    let Some(at) = text[..read].windows(KEY.len()).position(|found| found == KEY) else { return 0 };
    let digits = text[at + KEY.len()..read].iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0, |number: u32, c| number.wrapping_mul(10).wrapping_add(u32::from(c - b'0')))
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn paths_of_tasks_are_written_without_allocation() {
        for (task, text) in [(0, "/proc/0/ns/net"), (7, "/proc/7/ns/net"), (u32::MAX, "/proc/4294967295/ns/net")] {
            let path = Path::of(task).below(b"/ns/net");
            assert_eq!(std::ffi::CStr::from_bytes_until_nul(&path.bytes).unwrap().to_str(), Ok(text));
        }
        assert!(Path::of(std::process::id()).stat().is_some());
    }

    /// As before Linux 6.9, which opens no other thread than the first.
    #[test]
    fn a_descriptor_of_any_thread_is_taken() {
        let (file, other) = std::io::pipe().unwrap();
        let number = file.as_raw_fd();
        std::thread::spawn(move || {
            // SAFETY: no arguments
            let task = unsafe { libc::gettid() } as u32;
            assert_eq!(first_thread(task), std::process::id());
            let old = |id: u32, flags| match flags {
                // SAFETY: plain numbers
                0 => unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) as RawFd },
                _ => -1,
            };
            let fd = take_by(task, number, old);
            assert!(fd > number);
            // SAFETY: just made, belongs to nobody else
            let taken = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
            let ours = std::fs::File::from(OwnedFd::from(file));
            let inode = |file: &std::fs::File| file.metadata().unwrap().ino();
            assert_eq!(inode(&taken), inode(&ours));
            // SAFETY: of this thread alone
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
            assert_eq!(take_by(task, number, old), -1);
        })
        .join()
        .unwrap();
        drop(other);
    }
}
