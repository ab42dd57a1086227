//! Reads packets, and the stamps of those that were sent, many with one call (recvmmsg).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

use socket2::SockAddr;

use super::clock::nanos;
use super::control::{Message, Messages, Room};
use super::socket::UdpSocket;

/// Read at once.
pub(crate) const AT_ONCE: usize = 32;
/// No UDP packet is larger [byte].
const LARGEST: usize = 1 << 16;
/// Stamps, address, class, hop limit or an error with its offender.
const CONTROL: usize = 256;
/// From the kernel's errqueue.h: the stamp of a packet that left.
const SCM_TSTAMP_SND: u32 = 0;
const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;

/// A packet as it was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Arrival<'a> {
    pub from: SocketAddr,
    /// The local address that it was sent to, if the kernel tells one that can be answered from.
    pub local: Option<IpAddr>,
    pub payload: &'a [u8],
    pub dscp: u8,
    pub ecn: u8,
    pub ttl: u8,
    /// The kernel's stamp [ns of CLOCK_REALTIME].
    pub stamp: Option<i64>,
    /// Of all packets before it so many found no room in the socket; wraps.
    pub missed: u32,
}

/// What a socket's error queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorQueueItem {
    /// The packet with this number left [ns of CLOCK_REALTIME].
    Departed { key: u32, stamp: i64 },
    /// The network could not deliver a packet: an error number.
    Error(u32),
}

/// Buffers for reading.
pub(crate) struct Reader {
    payloads: Vec<u8>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<Room<CONTROL>>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in `parts` and `headers` are set anew by every read and only used during it
unsafe impl Send for Reader {}

impl Reader {
    pub fn new() -> Reader {
        // SAFETY: zeros are valid for these structures of the system
        let (name, part, header) = unsafe { (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed()) };
        Reader {
            // written once, so that no page is missing when the first packet comes
            payloads: vec![1; AT_ONCE * LARGEST],
            names: vec![name; AT_ONCE],
            controls: vec![Room([0; CONTROL]); AT_ONCE],
            parts: vec![part; AT_ONCE],
            headers: vec![header; AT_ONCE],
        }
    }

    /// Reads up to `most` packets; none left: 0.
    ///
    /// # Errors
    /// One of an earlier packet that the network could not deliver, or the system's.
    pub fn packets(&mut self, socket: &UdpSocket, most: usize, mut each: impl FnMut(Arrival<'_>)) -> io::Result<usize> {
        let read = self.read(socket, most, 0)?;
        for i in 0..read {
            if let Some(arrival) = self.arrival(i) {
                each(arrival);
            }
        }
        Ok(read)
    }

    /// Reads up to `most` messages of the error queue; none left: 0.
    ///
    /// # Errors
    /// The system's.
    pub fn told(&mut self, socket: &UdpSocket, most: usize, mut each: impl FnMut(ErrorQueueItem)) -> io::Result<usize> {
        let read = self.read(socket, most, libc::MSG_ERRQUEUE)?;
        for i in 0..read {
            if let Some(told) = self.error(i) {
                each(told);
            }
        }
        Ok(read)
    }

    fn read(&mut self, socket: &UdpSocket, most: usize, flags: libc::c_int) -> io::Result<usize> {
        let count = most.min(AT_ONCE);
        for i in 0..count {
            self.parts[i] =
                libc::iovec { iov_base: self.payloads[i * LARGEST..].as_mut_ptr().cast(), iov_len: LARGEST };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = (&raw mut self.names[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_iov = &raw mut self.parts[i];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
            header.msg_flags = 0;
        }
        // SAFETY: each header points to buffers of this structure with the lengths that it says
        let read = unsafe {
            let headers = self.headers.as_mut_ptr();
            libc::recvmmsg(socket.fd(), headers, count as _, (flags | libc::MSG_DONTWAIT) as _, ptr::null_mut())
        };
        if read >= 0 {
            return Ok(read as usize);
        }
        match io::Error::last_os_error() {
            e if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            e => Err(e),
        }
    }

    fn messages(&self, i: usize) -> Messages<'_> {
        // SAFETY: called for those that the kernel has filled; the buffers belong to self
        unsafe { Messages::of(&self.headers[i].msg_hdr) }
    }

    fn arrival(&self, i: usize) -> Option<Arrival<'_>> {
        let length = self.headers[i].msg_len as usize;
        let payload = &self.payloads[i * LARGEST..][..length];
        let mut arrival =
            Arrival { from: self.from(i)?, local: None, payload, dscp: 0, ecn: 0, ttl: 0, stamp: None, missed: 0 };
        for message in self.messages(i) {
            match (message.level, message.kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING | libc::SCM_TIMESTAMPNS) => arrival.stamp = stamp(message),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => arrival.missed = message.number() as u32,
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    let class = message.number() as u8;
                    (arrival.dscp, arrival.ecn) = (class >> 2, class & 3);
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    arrival.ttl = message.number() as u8;
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    // SAFETY: integers
                    let info = unsafe { message.value::<libc::in_pktinfo>() }?;
                    // they differ for broadcast and multicast, which must not be answered
                    let address = |a: libc::in_addr| IpAddr::from(u32::from_be(a.s_addr).to_be_bytes());
                    let own = info.ipi_addr.s_addr == info.ipi_spec_dst.s_addr;
                    arrival.local = own.then(|| address(info.ipi_addr));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    // SAFETY: integers
                    let info = unsafe { message.value::<libc::in6_pktinfo>() }?;
                    arrival.local = Some(IpAddr::from(info.ipi6_addr.s6_addr)).filter(|a| !a.is_multicast());
                }
                _ => {}
            }
        }
        Some(arrival)
    }

    fn from(&self, i: usize) -> Option<SocketAddr> {
        let length = self.headers[i].msg_hdr.msg_namelen;
        // SAFETY: the kernel has written an address of this length; socket2 has the same storage as libc
        let address = unsafe {
            SockAddr::try_init(|storage, size| {
                ptr::copy_nonoverlapping((&raw const self.names[i]).cast::<u8>(), storage.cast(), length as usize);
                *size = length;
                Ok(())
            })
        };
        address.ok()?.1.as_socket()
    }

    fn error(&self, i: usize) -> Option<ErrorQueueItem> {
        let mut left = None;
        let mut error = None;
        for message in self.messages(i) {
            match (message.level, message.kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => left = stamp(message),
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    // SAFETY: integers
                    error = unsafe { message.value::<libc::sock_extended_err>() };
                }
                _ => {}
            }
        }
        match error? {
            e if e.ee_origin == SO_EE_ORIGIN_TIMESTAMPING => {
                (e.ee_info == SCM_TSTAMP_SND).then_some(ErrorQueueItem::Departed { key: e.ee_data, stamp: left? })
            }
            e => Some(ErrorQueueItem::Error(e.ee_errno)),
        }
    }
}

/// The first of the stamps, which is the kernel's own; the others are a device's.
fn stamp(message: Message<'_>) -> Option<i64> {
    // SAFETY: integers
    let time = unsafe { message.value::<libc::timespec>() }?;
    Some(nanos(&time)).filter(|&t| t != 0)
}
