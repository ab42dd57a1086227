//! Where sockets come from: the host itself, or whatever network stack an emulator stands for.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;

use pathcast_base::Protocol;
use socket2::{Domain, Socket, Type};

use crate::interfaces::{self, InterfaceAddress};

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }
    fn domain(self) -> Domain {
        match self {
            Family::V4 => Domain::IPV4,
            Family::V6 => Domain::IPV6,
        }
    }
}

/// Makes sockets and reads settings in one network stack. Only [`SocketMaker::run`] must be written: an emulator runs
/// `work` on a thread that has entered the right namespace, and everything else follows.
///
/// Sockets belong to the namespace that they were made in, whatever thread uses them later.
pub trait SocketMaker: Send + Sync {
    /// Calls `work` once where sockets are to be made, and returns after it.
    ///
    /// # Errors
    /// When that place cannot be entered; `work` has not been called then.
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()>;

    /// A stream socket.
    ///
    /// # Errors
    /// The system's, such as EPROTONOSUPPORT or ENOPROTOOPT without MPTCP.
    fn tcp(&self, family: Family, protocol: Protocol) -> io::Result<Socket> {
        within(self, || make_tcp(family, protocol))
    }

    /// A datagram socket.
    ///
    /// # Errors
    /// The system's.
    fn udp(&self, family: Family) -> io::Result<Socket> {
        within(self, || Socket::new(family.domain(), Type::DGRAM, None))
    }

    /// A socket for whole TCP segments, which hears all that come to this stack.
    ///
    /// # Errors
    /// PermissionDenied without CAP_NET_RAW, or the system's.
    fn raw_tcp(&self, family: Family) -> io::Result<Socket> {
        within(self, || Socket::new(family.domain(), Type::RAW, Some(socket2::Protocol::TCP)))
    }

    /// A generic netlink socket (NETLINK_GENERIC), not bound.
    ///
    /// # Errors
    /// The system's.
    fn netlink_generic(&self) -> io::Result<OwnedFd> {
        within(self, || make_netlink(libc::NETLINK_GENERIC))
    }

    /// A routing netlink socket (NETLINK_ROUTE), not bound.
    ///
    /// # Errors
    /// The system's.
    fn netlink_route(&self) -> io::Result<OwnedFd> {
        within(self, || make_netlink(libc::NETLINK_ROUTE))
    }

    /// A netlink socket that answers about sockets (NETLINK_SOCK_DIAG), not bound.
    ///
    /// # Errors
    /// The system's.
    fn netlink_diag(&self) -> io::Result<OwnedFd> {
        within(self, || make_netlink(libc::NETLINK_SOCK_DIAG))
    }

    /// The addresses of this stack.
    ///
    /// # Errors
    /// The system's.
    fn interfaces(&self) -> io::Result<Vec<InterfaceAddress>> {
        within(self, interfaces::list)
    }

    /// The setting `/proc/sys/net/<name>`, such as `ipv4/tcp_available_congestion_control`, without the final newline.
    ///
    /// # Errors
    /// The system's; NotFound where this kernel has no such setting.
    fn sysctl(&self, name: &str) -> io::Result<String> {
        let path = sysctl_path(name)?;
        within(self, || std::fs::read_to_string(&path).map(|s| s.trim_end().to_owned()))
    }

    /// Writes the setting `/proc/sys/net/<name>`.
    ///
    /// # Errors
    /// The system's.
    fn set_sysctl(&self, name: &str, value: &str) -> io::Result<()> {
        let path = sysctl_path(name)?;
        within(self, || std::fs::write(&path, value))
    }

    /// The setting `/proc/sys/net/mptcp/<name>`.
    ///
    /// # Errors
    /// As [`SocketMaker::sysctl`].
    fn mptcp_sysctl(&self, name: &str) -> io::Result<String> {
        self.sysctl(&format!("mptcp/{name}"))
    }

    /// Writes the setting `/proc/sys/net/mptcp/<name>`.
    ///
    /// # Errors
    /// As [`SocketMaker::set_sysctl`].
    fn set_mptcp_sysctl(&self, name: &str, value: &str) -> io::Result<()> {
        self.set_sysctl(&format!("mptcp/{name}"), value)
    }
}

/// The stack that this process lives in.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostSockets;

impl SocketMaker for HostSockets {
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()> {
        work();
        Ok(())
    }
}

/// `work`'s result, from where `maker` runs it.
pub(crate) fn within<M, T, W>(maker: &M, work: W) -> io::Result<T>
where
    M: SocketMaker + ?Sized,
    T: Send,
    W: FnOnce() -> io::Result<T> + Send,
{
    let mut work = Some(work);
    let mut result = None;
    maker.run(&mut || {
        if let Some(work) = work.take() {
            result = Some(work());
        }
    })?;
    result.unwrap_or_else(|| Err(io::Error::other("the socket maker did not run its work")))
}

pub(crate) fn make_tcp(family: Family, protocol: Protocol) -> io::Result<Socket> {
    let number = match protocol {
        Protocol::Tcp => socket2::Protocol::TCP,
        Protocol::Mptcp => socket2::Protocol::MPTCP,
    };
    Socket::new(family.domain(), Type::STREAM, Some(number))
}

fn make_netlink(protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain system call without pointers
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just made and belongs to nobody else
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn sysctl_path(name: &str) -> io::Result<PathBuf> {
    let good = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !name.split('/').all(good) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not the name of a setting")));
    }
    Ok(PathBuf::from("/proc/sys/net").join(name))
}

/// Binds to `local`; with port 0 the kernel chooses it.
pub(crate) fn bind(socket: &Socket, local: SocketAddr) -> io::Result<()> {
    socket.bind(&local.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_settings_stay_below_their_directory() {
        assert!(HostSockets.sysctl("../kernel/hostname").is_err());
        assert!(HostSockets.sysctl("ipv4/../../kernel/hostname").is_err());
        assert!(HostSockets.sysctl("ipv4/tcp_available_congestion_control").unwrap().contains("reno"));
    }
}
