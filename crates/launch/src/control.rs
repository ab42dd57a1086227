//! Is there a controller of that name?

use std::io;
use std::os::fd::AsRawFd;

use pathcast_net::{Family, HostSockets, Protocol, SocketMaker};

use crate::error::LaunchError;

const REGISTERED: &str = "ipv4/tcp_available_congestion_control";

/// Refuses what the kernel does not have. It is asked for the controller on a socket too, since that loads its module.
///
/// # Errors
/// `UnknownControl` with the names that there are.
pub(crate) fn check(name: &str) -> Result<(), LaunchError> {
    let failed = || LaunchError::system("reading the kernel's congestion controllers");
    if registered().map_err(failed())?.split_whitespace().any(|n| n == name) {
        return Ok(());
    }
    let socket = HostSockets.tcp(Family::V4, Protocol::Tcp).map_err(LaunchError::system("making a TCP socket"))?;
    let length = name.len() as libc::socklen_t;
    // SAFETY: the text is as long as is said
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
    };
    // the kernel cuts names off at 15 characters
    if done == 0 && registered().map_err(failed())?.split_whitespace().any(|n| n == name) {
        return Ok(());
    }
    Err(LaunchError::UnknownControl { name: name.into(), available: registered().map_err(failed())? })
}

fn registered() -> io::Result<String> {
    HostSockets.sysctl(REGISTERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_has_is_named() {
        check("reno").unwrap();
        for name in ["", "no_such", "ren", "a b", "renorenorenorenoreno"] {
            let error = check(name).unwrap_err();
            assert!(matches!(error, LaunchError::UnknownControl { .. }), "{error}");
            assert!(error.to_string().contains(" reno"), "{error}");
        }
    }
}
