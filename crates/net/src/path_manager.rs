//! The user-space end of the kernel's MPTCP path manager (generic netlink family "mptcp_pm").

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::NetError;
use crate::events::{self, Event};
use crate::maker::SocketMaker;
use crate::netlink::{self, Request};

const GENL_CTRL: u16 = 0x10;
const CTRL_GETFAMILY: u8 = 3;
const VERSION: u8 = 1;

const CMD_SET_LIMITS: u8 = 5;
const CMD_GET_LIMITS: u8 = 6;
const CMD_SET_FLAGS: u8 = 7;
const CMD_SUBFLOW_CREATE: u8 = 10;
const CMD_SUBFLOW_DESTROY: u8 = 11;

const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;
const ATTR_TOKEN: u16 = 4;
const ATTR_ADDR_REMOTE: u16 = 6;

const ADDR_FAMILY: u16 = 1;
const ADDR_ID: u16 = 2;
const ADDR_V4: u16 = 3;
const ADDR_V6: u16 = 4;
const ADDR_PORT: u16 = 5;
const ADDR_FLAGS: u16 = 6;
const FLAG_SUBFLOW: u32 = 1 << 1;
const FLAG_BACKUP: u32 = 1 << 2;

/// A socket for commands, and the family's number in this network stack.
pub(crate) struct Commands {
    fd: OwnedFd,
    family: u16,
    events: Option<u32>,
    sequence: u32,
}

impl Commands {
    /// # Errors
    /// NotFound where the kernel has no MPTCP path manager.
    pub fn open(maker: &dyn SocketMaker) -> io::Result<Commands> {
        let fd = maker.netlink_generic()?;
        let mut request = Request::generic(GENL_CTRL, CTRL_GETFAMILY, 1);
        request.attribute(2, b"mptcp_pm\0");
        let answer = netlink::ask(fd.as_fd(), request, 1)?;
        let (mut family, mut events) = (None, None);
        for (kind, value) in netlink::attributes(answer.get(4..).unwrap_or_default()) {
            match kind {
                1 => family = value.try_into().ok().map(u16::from_ne_bytes),
                7 => {
                    events = netlink::attributes(value).find_map(|(_, group)| group_number(group, b"mptcp_pm_events\0"))
                }
                _ => {}
            }
        }
        let family = family.ok_or(io::ErrorKind::NotFound)?;
        Ok(Commands { fd, family, events, sequence: 1 })
    }

    fn send(&mut self, command: u8, fill: impl FnOnce(&mut Request)) -> io::Result<Vec<u8>> {
        let mut request = Request::generic(self.family, command, VERSION);
        fill(&mut request);
        self.sequence += 1;
        netlink::ask(self.fd.as_fd(), request, self.sequence)
    }

    /// Begins a subflow of the connection `token`; it is established, or closed, by an event. As `backup` it is given data only
    /// while there is no other (RFC 8684, section 3.2). Port 0 of `local`: the kernel's choice.
    pub fn create(
        &mut self,
        token: u32,
        id: u8,
        local: SocketAddr,
        remote: SocketAddr,
        backup: bool,
    ) -> io::Result<()> {
        let flags = FLAG_SUBFLOW | if backup { FLAG_BACKUP } else { 0 };
        self.of_subflow(CMD_SUBFLOW_CREATE, token, local, remote, |address| {
            address.u8(ADDR_ID, id).u32(ADDR_FLAGS, flags);
        })
    }

    /// Makes a subflow a backup, or takes that back; the far end is told (MP_PRIO).
    pub fn set_backup(&mut self, token: u32, local: SocketAddr, remote: SocketAddr, backup: bool) -> io::Result<()> {
        let flags = if backup { FLAG_BACKUP } else { 0 };
        self.of_subflow(CMD_SET_FLAGS, token, local, remote, |address| {
            address.u32(ADDR_FLAGS, flags);
        })
    }

    /// Closes a subflow: what it holds is sent again over the others.
    pub fn destroy(&mut self, token: u32, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        self.of_subflow(CMD_SUBFLOW_DESTROY, token, local, remote, |_| {})
    }

    fn of_subflow(
        &mut self,
        command: u8,
        token: u32,
        local: SocketAddr,
        remote: SocketAddr,
        more: impl FnOnce(&mut Request),
    ) -> io::Result<()> {
        self.send(command, |r| {
            r.u32(ATTR_TOKEN, token);
            r.nested(ATTR_ADDR, |a| {
                put(a, local.ip());
                if local.port() != 0 {
                    a.u16(ADDR_PORT, local.port());
                }
                more(a);
            });
            r.nested(ATTR_ADDR_REMOTE, |a| {
                put(a, remote.ip());
                a.u16(ADDR_PORT, remote.port());
            });
        })
        .map(drop)
    }

    /// A second socket that hears the events from now on.
    ///
    /// # Errors
    /// PermissionDenied without CAP_NET_ADMIN.
    pub fn subscribe(&self, maker: &dyn SocketMaker) -> io::Result<Events> {
        let group = self.events.ok_or(io::ErrorKind::NotFound)?;
        let fd = maker.netlink_generic()?;
        // SAFETY: a zeroed sockaddr_nl is valid: port and groups chosen by the kernel
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let (size, group_size) = (size_of_val(&address) as u32, size_of_val(&group) as u32);
        // SAFETY: both pointers are to values of the sizes given
        let done = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) == 0
                && libc::setsockopt(
                    fd.as_raw_fd(),
                    libc::SOL_NETLINK,
                    libc::NETLINK_ADD_MEMBERSHIP,
                    (&raw const group).cast(),
                    group_size,
                ) == 0
        };
        if !done {
            return Err(io::Error::last_os_error());
        }
        Ok(Events { fd, family: self.family })
    }
}

fn put(request: &mut Request, address: IpAddr) {
    let (family, kind) = if address.is_ipv4() { (libc::AF_INET, ADDR_V4) } else { (libc::AF_INET6, ADDR_V6) };
    request.u16(ADDR_FAMILY, family as u16).attribute(kind, &netlink::octets(address));
}

fn group_number(group: &[u8], name: &[u8]) -> Option<u32> {
    let value_of = |wanted| netlink::attributes(group).find(|&(kind, _)| kind == wanted).map(|(_, value)| value);
    (value_of(1)? == name).then(|| value_of(2)?.try_into().ok().map(u32::from_ne_bytes)).flatten()
}

/// A socket that hears the events of all MPTCP connections of its network stack.
pub(crate) struct Events {
    fd: OwnedFd,
    family: u16,
}

impl Events {
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// What has come, and whether events were lost, which did not fit in the socket's buffer; never waits.
    pub fn take(&self) -> (Vec<Event>, bool) {
        let mut buffer = vec![0; 32 << 10];
        let (mut found, mut lost) = (Vec::new(), false);
        loop {
            match netlink::receive(self.fd.as_fd(), &mut buffer) {
                Ok(n) => found.extend(events::parse(&buffer[..n], self.family)),
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => lost = true,
                Err(_) => return (found, lost),
            }
        }
    }
}

/// What the in-kernel path manager lets a connection have (`ip mptcp limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PathManagerLimits {
    /// Subflows beside the first; a server refuses joins beyond it.
    pub subflows: u32,
    /// Addresses accepted from the other end.
    pub add_addr_accepted: u32,
}

/// Reads the limits of `maker`'s network stack.
///
/// # Errors
/// The system's; NotFound without MPTCP.
pub fn limits(maker: &dyn SocketMaker) -> Result<PathManagerLimits, NetError> {
    let answer = Commands::open(maker)
        .and_then(|mut c| c.send(CMD_GET_LIMITS, |_| {}))
        .map_err(NetError::system("reading the MPTCP limits"))?;
    let value = |wanted| {
        let mut attributes = netlink::attributes(answer.get(4..).unwrap_or_default());
        attributes.find(|&(kind, _)| kind == wanted).and_then(|(_, v)| v.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    Ok(PathManagerLimits { subflows: value(ATTR_SUBFLOWS), add_addr_accepted: value(ATTR_RCV_ADD_ADDRS) })
}

/// Sets the limits of `maker`'s network stack, for all its connections: 8 at most each. Needs CAP_NET_ADMIN.
///
/// # Errors
/// The system's; exit 5 when not permitted.
pub fn set_limits(maker: &dyn SocketMaker, limits: PathManagerLimits) -> Result<(), NetError> {
    Commands::open(maker)
        .and_then(|mut c| {
            c.send(CMD_SET_LIMITS, |r| {
                r.u32(ATTR_RCV_ADD_ADDRS, limits.add_addr_accepted).u32(ATTR_SUBFLOWS, limits.subflows);
            })
        })
        .map(drop)
        .map_err(NetError::system("setting the MPTCP limits"))
}
