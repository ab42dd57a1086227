//! A UDP socket that measures: the kernel stamps what arrives and what leaves (SO_TIMESTAMPING), every packet has its code
//! point and, at a far end, the local address that it was sent to. Packets are never cut in pieces.
//!
//! UDP_GRO stays off: it would join packets of one flow to one, with one stamp.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};

use socket2::{SockAddr, Socket};

use super::control::{Room, Writer};
use crate::maker::{Family, SocketMaker};

/// Enough for some 14,000 packets that wait to be read, the stamps of what was sent among them: 0.15 s of 1 Gbit/s [byte].
const RECEIVE_BUFFER: libc::c_int = 32 << 20;
const SEND_BUFFER: libc::c_int = 4 << 20;
/// Code point and local address.
const CONTROL: usize = 96;

/// Who takes the stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamping {
    /// The kernel stamps what arrives and what leaves.
    Both,
    /// The kernel stamps only what arrives (SO_TIMESTAMPNS).
    Arrivals,
    /// We do.
    Own,
}

/// Where a packet goes when the socket is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub remote: SocketAddr,
    /// The address that it is sent from; none: the kernel chooses.
    pub local: Option<IpAddr>,
}

/// One packet to be sent.
pub(crate) struct Outgoing<'a> {
    /// None: to where the socket is connected to.
    pub to: Option<Target>,
    /// How the payload begins, and what it is filled up with.
    pub head: &'a [u8],
    pub filling: &'a [u8],
    pub dscp: u8,
    pub ecn: u8,
}

pub(crate) struct UdpSocket {
    socket: Socket,
    family: Family,
    pub stamping: Stamping,
}

impl UdpSocket {
    /// Makes one that is bound to `local`.
    pub fn bind(maker: &dyn SocketMaker, local: SocketAddr) -> io::Result<UdpSocket> {
        let family = Family::of(local.ip());
        let socket = maker.udp(family)?;
        socket.set_nonblocking(true)?;
        let mut made = UdpSocket { socket, family, stamping: Stamping::Own };
        made.set_options()?;
        made.socket.bind(&local.into())?;
        Ok(made)
    }

    fn set_options(&mut self) -> io::Result<()> {
        use libc::{IPPROTO_IP, IPPROTO_IPV6};
        let options: &[(i32, i32, i32)] = match self.family {
            Family::V4 => &[
                (IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
                (IPPROTO_IP, libc::IP_RECVTOS, 1),
                (IPPROTO_IP, libc::IP_RECVTTL, 1),
                (IPPROTO_IP, libc::IP_PKTINFO, 1),
                (IPPROTO_IP, libc::IP_RECVERR, 1),
            ],
            Family::V6 => &[
                (IPPROTO_IPV6, libc::IPV6_V6ONLY, 1), // beside a socket on 0.0.0.0
                (IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
                (IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1),
                (IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
                (IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
                (IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
                (IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
            ],
        };
        for &(level, name, value) in options {
            self.set(level, name, value)?;
        }
        // how many found no room; without it they count as lost
        let _ = self.set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
        // the forced ones need CAP_NET_ADMIN; without it as much as the system allows
        for (forced, plain, bytes) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER),
        ] {
            self.set(libc::SOL_SOCKET, forced, bytes).or_else(|_| self.set(libc::SOL_SOCKET, plain, bytes))?;
        }
        self.stamping = if self.number_stamps().is_ok() {
            Stamping::Both
        } else if self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).is_ok() {
            Stamping::Arrivals
        } else {
            Stamping::Own
        };
        Ok(())
    }

    /// Asks for stamps; what is sent after it is numbered from 0 (SOF_TIMESTAMPING_OPT_ID).
    pub fn number_stamps(&self) -> io::Result<()> {
        let plain = libc::SOF_TIMESTAMPING_RX_SOFTWARE
            | libc::SOF_TIMESTAMPING_TX_SOFTWARE
            | libc::SOF_TIMESTAMPING_SOFTWARE
            | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        // the kernel begins anew only when this option was off
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, plain as i32)?;
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, (plain | libc::SOF_TIMESTAMPING_OPT_ID) as i32)
    }

    fn set(&self, level: i32, name: i32, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the option reads one int, which outlives the call
        let result = unsafe {
            libc::setsockopt(
                self.fd(),
                level,
                name,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes packets from `remote` only from now on, and sends to it.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        self.socket.connect(&remote.into())
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?;
        address.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// IP and UDP headers [byte].
    pub fn overhead(&self) -> usize {
        match self.family {
            Family::V4 => 28,
            Family::V6 => 48,
        }
    }

    /// Sends one packet, or nothing.
    pub fn send(&self, packet: &Outgoing<'_>) -> io::Result<()> {
        let mut room = Room([0; CONTROL]);
        let mut control = Writer::new(&mut room);
        let class = i32::from(packet.dscp) << 2 | i32::from(packet.ecn);
        match self.family {
            Family::V4 => control.push(libc::IPPROTO_IP, libc::IP_TOS, class),
            Family::V6 => control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class),
        }
        match packet.to.and_then(|to| to.local) {
            Some(IpAddr::V4(local)) => {
                let spec = libc::in_addr { s_addr: u32::from(local).to_be() };
                let any = libc::in_addr { s_addr: u32::from(Ipv4Addr::UNSPECIFIED) };
                let from = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: spec, ipi_addr: any };
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, from);
            }
            Some(IpAddr::V6(local)) => {
                let address = libc::in6_addr { s6_addr: local.octets() };
                let from = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, from);
            }
            None => {}
        }
        let used = control.used();
        let name = packet.to.map(|to| SockAddr::from(to.remote));
        let parts = [IoSlice::new(packet.head), IoSlice::new(packet.filling)];
        // SAFETY: zeros are valid
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        if let Some(name) = &name {
            header.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_namelen = name.len();
        }
        header.msg_iov = parts.as_ptr().cast_mut().cast(); // an IoSlice is an iovec
        header.msg_iovlen = parts.len() as _;
        header.msg_control = room.0.as_mut_ptr().cast();
        header.msg_controllen = used as _;
        // SAFETY: all that the header points to outlives the call, which changes none of it
        let sent = unsafe { libc::sendmsg(self.fd(), &header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
        if sent >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::receive::{AT_ONCE, Reader};
    use super::*;
    use crate::maker::HostSockets;

    #[test]
    fn what_finds_no_room_is_counted_by_what_comes_after_it() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (to, from) = (UdpSocket::bind(&HostSockets, any).unwrap(), UdpSocket::bind(&HostSockets, any).unwrap());
        to.set(libc::SOL_SOCKET, libc::SO_RCVBUF, 16 << 10).unwrap();
        from.connect(to.local_addr().unwrap()).unwrap();
        let send = || from.send(&Outgoing { to: None, head: b"probe", filling: &[0; 1000], dscp: 0, ecn: 0 }).unwrap();
        let mut reader = Reader::new();
        let mut read = || {
            let (mut came, mut missed) = (0, 0);
            while reader.packets(&to, AT_ONCE, |arrival| (came, missed) = (came + 1, arrival.missed)).unwrap() > 0 {}
            (came, missed)
        };
        (0..200).for_each(|_| send());
        let (came, missed) = read();
        assert!(came > 2 && came < 200 && missed == 0, "{came} {missed}: the kernel counts before what comes");
        send();
        assert_eq!(read(), (1, 200 - came));
    }
}
