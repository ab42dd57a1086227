//! TCP segments as they come, beside the kernel's own TCP: what no socket option tells. Needs CAP_NET_RAW.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Instant;

use socket2::{SockAddr, Socket};

use crate::maker::{Family, SocketMaker};
use crate::poll;

/// No segment's headers are longer, those of IP included [byte].
const LONGEST: usize = 256;
const HEADER: usize = 20;

/// Flags of a segment (RFC 9293, RFC 3168).
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const ECE: u8 = 0x40;
pub(crate) const CWR: u8 = 0x80;

/// What is looked at of a segment that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub source: u16,
    pub target: u16,
    pub flags: u8,
    /// The sender's timestamp, and the one that it echoes.
    pub timestamps: Option<(u32, u32)>,
}

impl Segment {
    /// From where TCP's header begins.
    fn parse(b: &[u8]) -> Option<Segment> {
        let word = |at: usize| Some(u16::from_be_bytes([*b.get(at)?, *b.get(at + 1)?]));
        let length = usize::from(b.get(12)? >> 4) * 4;
        let mut options = b.get(HEADER..length)?;
        let mut timestamps = None;
        while let Some((&kind, rest)) = options.split_first() {
            match kind {
                0 => break,
                1 => options = rest,
                _ => {
                    let size = usize::from(*rest.first()?);
                    let option = options.get(..size).filter(|_| size >= 2)?;
                    if let (8, [_, _, a, b, c, d, e, f, g, h]) = (kind, option) {
                        let of = u32::from_be_bytes;
                        timestamps = Some((of([*a, *b, *c, *d]), of([*e, *f, *g, *h])));
                    }
                    options = &options[size..];
                }
            }
        }
        Some(Segment { source: word(0)?, target: word(2)?, flags: *b.get(13)?, timestamps })
    }
}

/// The segments between two addresses.
pub(crate) struct RawTcp {
    socket: Socket,
    local: IpAddr,
    remote: IpAddr,
}

impl RawTcp {
    /// # Errors
    /// PermissionDenied without CAP_NET_RAW, or the system's.
    pub fn open(maker: &dyn SocketMaker, local: IpAddr, remote: IpAddr) -> io::Result<RawTcp> {
        let socket = maker.raw_tcp(Family::of(local))?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddr::new(local, 0).into())?;
        // only what comes from there is heard
        socket.connect(&SocketAddr::new(remote, 0).into())?;
        Ok(RawTcp { socket, local, remote })
    }

    /// Sends a first segment of a connection: a SYN with further flags.
    pub fn send_syn(&self, source: u16, target: u16, sequence: u32, flags: u8) -> io::Result<()> {
        let mut segment = [0u8; HEADER + 4];
        segment[..2].copy_from_slice(&source.to_be_bytes());
        segment[2..4].copy_from_slice(&target.to_be_bytes());
        segment[4..8].copy_from_slice(&sequence.to_be_bytes());
        (segment[12], segment[13]) = ((((HEADER + 4) / 4) << 4) as u8, SYN | flags);
        segment[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        segment[HEADER..].copy_from_slice(&[2, 4, 5, 0xb4]); // largest segment: 1460
        let sum = checksum(self.local, self.remote, &segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        // a raw socket of IPv6 has no ports
        let to: SockAddr = SocketAddr::new(self.remote, 0).into();
        self.socket.send_to(&segment, &to).map(drop)
    }

    /// The next segment before `until`; none: none came.
    pub fn next(&self, until: Instant) -> io::Result<Option<Segment>> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); LONGEST];
        loop {
            if !poll::readable(self.socket.as_fd(), until)? {
                return Ok(None);
            }
            match self.socket.recv(&mut buffer) {
                Ok(n) => {
                    // SAFETY: the kernel has written so many bytes
                    let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), n) };
                    let skip =
                        if self.local.is_ipv4() { bytes.first().map_or(0, |b| usize::from(b & 15) * 4) } else { 0 };
                    if let Some(segment) = bytes.get(skip..).and_then(Segment::parse) {
                        return Ok(Some(segment));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// TCP's, over the pseudo header of the IP version too (RFC 9293, RFC 8200).
fn checksum(local: IpAddr, remote: IpAddr, segment: &[u8]) -> u16 {
    let mut bytes = Vec::new();
    for address in [local, remote] {
        match address {
            IpAddr::V4(a) => bytes.extend(a.octets()),
            IpAddr::V6(a) => bytes.extend(a.octets()),
        }
    }
    // the zeros of either version's pseudo header add nothing
    bytes.extend([0, libc::IPPROTO_TCP as u8]);
    bytes.extend((segment.len() as u16).to_be_bytes());
    bytes.extend_from_slice(segment);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_with_its_timestamps_and_what_is_cut_is_not() {
        let mut bytes = vec![0; 32];
        bytes[..4].copy_from_slice(&[0x14, 0x9b, 0, 80]);
        (bytes[12], bytes[13]) = (8 << 4, ACK);
        bytes[20..].copy_from_slice(&[1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
        let segment = Segment { source: 5275, target: 80, flags: ACK, timestamps: Some((7, 9)) };
        assert_eq!(Segment::parse(&bytes), Some(segment));
        assert!((0..32).all(|n| Segment::parse(&bytes[..n]).is_none()));
        bytes[23] = 0;
        assert_eq!(Segment::parse(&bytes), None, "an option of no length");
    }

    #[test]
    fn the_checksum_of_a_whole_segment_is_zero() {
        for (local, remote) in [("192.0.2.1", "198.51.100.7"), ("2001:db8::1", "2001:db8::ffff")] {
            let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
            let mut segment: Vec<u8> = (0..25).collect();
            segment[16..18].fill(0);
            let sum = checksum(local, remote, &segment);
            segment[16..18].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(checksum(local, remote, &segment), 0);
        }
    }
}
