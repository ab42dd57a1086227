//! A small netlink: messages, attributes, request and answer. Integers are in the host's order, as the kernel wants them.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::poll;

/// Attribute flag: the value is made of attributes.
const NESTED: u16 = 1 << 15;
const HEADER: usize = 16;
/// No answer of the kernel takes longer; it is the same machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that is being written.
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of the type `kind` (a generic netlink family, or an RTM_ number) with netlink `flags` added to
    /// NLM_F_REQUEST, beginning with `head` (genlmsghdr or rtmsg).
    pub fn new(kind: u16, flags: i32, head: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        bytes.extend_from_slice(head);
        let mut request = Request { bytes };
        request.pad();
        request
    }

    /// A generic netlink request: command and version of the family.
    pub fn generic(family: u16, command: u8, version: u8) -> Request {
        Request::new(family, libc::NLM_F_ACK, &[command, version, 0, 0])
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Request {
        self.bytes.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.pad();
        self
    }
    pub fn u8(&mut self, kind: u16, value: u8) -> &mut Request {
        self.attribute(kind, &[value])
    }
    pub fn u16(&mut self, kind: u16, value: u16) -> &mut Request {
        self.attribute(kind, &value.to_ne_bytes())
    }
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Request {
        self.attribute(kind, &value.to_ne_bytes())
    }
    pub fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Request)) -> &mut Request {
        let start = self.bytes.len();
        self.attribute(kind | NESTED, &[]);
        fill(self);
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = (self.bytes.len() as u32).to_ne_bytes();
        self.bytes[..4].copy_from_slice(&length);
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// The octets of an address.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    }
}

/// The address of 4 or 16 octets.
pub(crate) fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
        _ => None,
    }
}

/// The attributes in `bytes`, with the nested flag taken off; ends at the first that is cut off.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The messages in a datagram: type, sequence, body.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        let sequence = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, sequence, body))
    })
}

/// Sends `request` and gives the first answer's body, empty when the kernel only acknowledged.
///
/// # Errors
/// The kernel's error number; TimedOut when it does not answer.
pub(crate) fn ask(fd: BorrowedFd<'_>, request: Request, sequence: u32) -> io::Result<Vec<u8>> {
    let bytes = request.finish(sequence);
    // SAFETY: the buffer lives through the call; an unconnected netlink socket sends to the kernel
    let sent = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let deadline = Instant::now() + PATIENCE;
    let mut buffer = vec![0; 32 << 10];
    let mut answer = Vec::new();
    loop {
        if !poll::readable(fd, deadline)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel did not answer"));
        }
        let n = receive(fd, &mut buffer)?;
        for (kind, of, body) in messages(&buffer[..n]) {
            if of != sequence {
                continue; // late answer to an earlier question
            }
            if i32::from(kind) == libc::NLMSG_ERROR {
                let code = body.get(..4).and_then(|b| b.try_into().ok()).map_or(-libc::EPROTO, i32::from_ne_bytes);
                return if code == 0 { Ok(answer) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            answer = body.to_vec();
        }
    }
}

/// One datagram. WouldBlock when there is none.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is as long as is said
    let n = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_request_is_laid_out_as_the_kernel_wants() {
        let mut r = Request::generic(0x21, 10, 1);
        r.u32(4, 0xaabbccdd).nested(1, |a| {
            a.u16(1, 2).u8(2, 7);
        });
        #[rustfmt::skip]
        let want = [
            48, 0, 0, 0, 0x21, 0, 5, 0, 9, 0, 0, 0, 0, 0, 0, 0, // length, type, REQUEST|ACK, sequence, port
            10, 1, 0, 0,
            8, 0, 4, 0, 0xdd, 0xcc, 0xbb, 0xaa,
            20, 0, 1, 0x80,
            6, 0, 1, 0, 2, 0, 0, 0,
            5, 0, 2, 0, 7, 0, 0, 0,
        ];
        assert_eq!(r.finish(9), want);
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut r = Request::generic(3, 1, 1);
        r.nested(9, |n| {
            n.attribute(5, &octets("2001:db8::7".parse().unwrap()));
        });
        let bytes = r.finish(4);
        let (kind, sequence, body) = messages(&bytes).next().unwrap();
        assert_eq!((kind, sequence), (3, 4));
        let (kind, nest) = attributes(&body[4..]).next().unwrap();
        assert_eq!(kind, 9);
        let (kind, value) = attributes(nest).next().unwrap();
        assert_eq!((kind, address(value)), (5, "2001:db8::7".parse().ok()));
    }

    #[test]
    fn cut_off_and_absurd_lengths_end_the_walk() {
        let mut bytes = Request::generic(3, 1, 1).finish(0);
        for n in 0..bytes.len() {
            assert!(messages(&bytes[..n]).next().is_none());
        }
        bytes[0] = 3;
        assert_eq!(messages(&bytes).count(), 0);
        assert_eq!(attributes(&[0, 0, 0, 0, 1]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[9, 0, 1, 0, 1]).count(), 0);
    }
}
