//! The way of the filter's listener from the program to be, which installs the filter, to the socket maker.

use std::io;
use std::os::fd::RawFd;

/// Space for one descriptor in a control message.
#[repr(C)]
#[derive(Clone, Copy)]
struct OneDescriptor {
    head: libc::cmsghdr,
    fd: RawFd,
    pad: i32,
}

/// Sends the listener to the maker. Only system calls, for use between fork and exec.
///
/// # Errors
/// The system's.
pub(crate) fn hand_over(channel: RawFd, listener: RawFd) -> io::Result<()> {
    // SAFETY: zeros are valid for both
    let (mut message, mut control): (libc::msghdr, OneDescriptor) = unsafe { std::mem::zeroed() };
    let mut byte = 0u8;
    let mut text = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    control.head.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<RawFd>()) as _;
    control.head.cmsg_level = libc::SOL_SOCKET;
    control.head.cmsg_type = libc::SCM_RIGHTS;
    control.fd = listener;
    message.msg_iov = &mut text;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<OneDescriptor>() as _;
    // SAFETY: every pointer is to a local that outlives the call
    let sent = unsafe { libc::sendmsg(channel, &message, libc::MSG_NOSIGNAL) };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The other side of [`hand_over`]; -1 when nothing comes any more.
pub(crate) fn take_over(channel: RawFd) -> RawFd {
    loop {
        // SAFETY: zeros are valid for both
        let (mut message, mut control): (libc::msghdr, OneDescriptor) = unsafe { std::mem::zeroed() };
        let mut byte = 0u8;
        let mut text = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        message.msg_iov = &mut text;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<OneDescriptor>() as _;
        // SAFETY: every pointer is to a local that outlives the call
        let n = unsafe { libc::recvmsg(channel, &mut message, libc::MSG_CMSG_CLOEXEC) };
        // SAFETY: errno of this thread
        if n < 0 && unsafe { *libc::__errno_location() } == libc::EINTR {
            continue;
        }
        let came = n == 1 && control.head.cmsg_type == libc::SCM_RIGHTS && control.head.cmsg_level == libc::SOL_SOCKET;
        return if came { control.fd } else { -1 };
    }
}
