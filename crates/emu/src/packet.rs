//! Packets as a TUN or TAP device with offload hands them over: up to 64 KB that stand for many segments (TSO). A link
//! decides per segment; what it lets through together is written back as one shorter super-packet, a *run*.
//!
//! Layout of what is read and written: the 10-byte virtio-net header, of a TAP device the Ethernet header, then the IP packet.
//! Sizes are those of the IP packet with either device, so that a link carries the same over both.

use std::cell::{Ref, RefCell};
use std::net::IpAddr;
use std::rc::Rc;

use crate::tun::Layer;

/// Bytes of the virtio-net header in front of every packet.
pub const VNET: usize = 10;
/// The largest packet that a device hands over, with its headers.
pub const LARGEST: usize = 65536 + 14 + VNET;

const NEEDS_CSUM: u8 = 1;
/// Of the hosts' devices.
const MTU: usize = 1500;
/// Payload of a super-packet's segments as Open vSwitch 3.1 writes it: its port's MTU less headers without options. Linux drops
/// a super-packet with no more payload than that.
pub const SWITCHED: u32 = 1446;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
/// Congestion experienced, in the ECN field (RFC 3168).
const CE: u8 = 3;
/// The part of an IP header that holds the ECN field, and of IPv4 the checksum.
const MARKED: usize = 12;
/// Flows are told apart up to so many; a queue per flow keeps four bytes for each.
const FLOWS: u64 = 1 << 16;
const UDP: u8 = 17;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// One packet read from a device, shared by its segments.
pub struct Packet {
    data: RefCell<Box<[u8]>>,
    /// Where the IP packet begins.
    start: u8,
    /// Bytes of IP and TCP headers that every segment repeats; 0 where the packet is not segmented.
    headers: u16,
    /// Offset of the TCP header in the IP packet.
    l4: u16,
    /// Payload bytes of a full segment.
    gso_size: u16,
    segments: u16,
    /// IP bytes.
    len: u32,
}

/// One segment of a packet: what a link queues, drops and delays.
#[derive(Clone)]
pub struct Segment {
    packet: Rc<Packet>,
    index: u16,
}

/// Source and destination of an IP packet.
pub type Pair = (IpAddr, IpAddr);

/// The addresses of the IP packet behind the virtio-net header; `None` for what is not IP.
pub fn pair(frame: &[u8]) -> Option<Pair> {
    let ip = frame.get(VNET..)?;
    let v4 = |at: usize| -> Option<IpAddr> { Some(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?.into()) };
    let v6 = |at: usize| -> Option<IpAddr> { Some(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?.into()) };
    match ip.first()? >> 4 {
        4 => Some((v4(12)?, v4(16)?)),
        6 => Some((v6(8)?, v6(24)?)),
        _ => None,
    }
}

/// Whether a frame with an Ethernet header is IP multicast: none of a path's packets, but a host telling which groups it is in.
pub fn is_multicast(frame: &[u8]) -> bool {
    let to = &frame[VNET..];
    to.starts_with(&[0x33, 0x33]) || to.starts_with(&[0x01, 0x00, 0x5e])
}

impl Packet {
    /// Takes the first `bytes` of a frame, more than its headers below IP. What is not IP, and a super-packet whose headers
    /// make no sense, passes as one packet.
    pub fn new(mut frame: Box<[u8]>, bytes: usize, layer: Layer) -> Rc<Packet> {
        if layer == Layer::Switch {
            restore(&mut frame[..bytes], layer.bytes());
        }
        let start = VNET + layer.bytes();
        let len = bytes - start;
        let (headers, l4, gso_size) = cut(&frame[..bytes], layer.bytes()).unwrap_or((0, 0, 0));
        let segments = if headers == 0 { 1 } else { (len - headers).div_ceil(gso_size) };
        Rc::new(Packet {
            data: RefCell::new(frame),
            start: start as u8,
            headers: headers as u16,
            l4: l4 as u16,
            gso_size: gso_size as u16,
            segments: segments as u16,
            len: len as u32,
        })
    }

    fn start(&self) -> usize {
        usize::from(self.start)
    }

    /// How many packets of at most one MTU this stands for.
    pub fn segments(&self) -> u16 {
        self.segments
    }

    /// The segment `index` of `packet` and its IP bytes.
    pub fn segment(packet: &Rc<Packet>, index: u16) -> (Segment, u32) {
        let bytes = u32::from(packet.headers) + packet.payload(index, index);
        (Segment { packet: packet.clone(), index }, bytes)
    }

    /// Whether a link may mark it: its ECN field is not 0.
    pub fn ect(&self) -> bool {
        match self.data.borrow()[self.start()..] {
            [v4, tos, ..] if v4 >> 4 == 4 => tos & CE != 0,
            [v6, class, ..] if v6 >> 4 == 6 => class & CE << 4 != 0,
            _ => false,
        }
    }

    /// Its flow: a number below 65,536 that stands for addresses, protocol and ports (of fragments, and of what has no
    /// ports there: without).
    pub fn flow(&self) -> u32 {
        let data = self.data.borrow();
        let ip = &data[self.start()..];
        let word = |at: usize| -> u64 {
            ip.get(at..at + 4).map_or(0, |w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]).into())
        };
        let (addresses, protocol, l4) = match ip.first().map_or(0, |first| first >> 4) {
            // the first fragment too, or a packet would be two flows
            4 if word(4) & 0x3fff != 0 => (12..20, *ip.get(9).unwrap_or(&0), None),
            4 => (12..20, *ip.get(9).unwrap_or(&0), Some(usize::from(ip[0] & 15) * 4)),
            6 => (8..40, *ip.get(6).unwrap_or(&0), Some(40)),
            _ => (0..0, 0, None),
        };
        let ports = match l4 {
            Some(l4) if protocol == TCP || protocol == UDP => word(l4),
            _ => 0,
        };
        let mut hash = u64::from(protocol) << 32 | ports;
        for at in addresses.step_by(4) {
            hash = (hash.rotate_left(23) ^ word(at)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((u128::from(hash ^ hash >> 32) * u128::from(FLOWS)) >> 64) as u32
    }

    /// Payload bytes of segments `first..=last` (of an unsegmented packet: all of it).
    fn payload(&self, first: u16, last: u16) -> u32 {
        if self.headers == 0 {
            return self.len;
        }
        let gso = u32::from(self.gso_size);
        let whole = self.len - u32::from(self.headers);
        whole.min((u32::from(last) + 1) * gso) - u32::from(first) * gso
    }

    /// Gives back the memory behind segment `last`, when that is most of the packet: a queue then holds little more
    /// than what it counts, although its segments share the buffers that they were read into.
    pub fn keep_up_to(&self, last: u16) {
        let keep = self.start() + usize::from(self.headers) + self.payload(0, last) as usize;
        let mut data = self.data.borrow_mut();
        if keep * 2 <= data.len() {
            let kept = data[..keep].into();
            pool::put(std::mem::replace(&mut *data, kept));
        }
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        pool::put(std::mem::take(self.data.get_mut()));
    }
}

/// Gives a super-packet that has come through Open vSwitch the segments back that it had: as large as fit in the hosts' MTU.
/// Of version 3.1 their payload is `SWITCHED` bytes, whatever the options of TCP.
fn restore(frame: &mut [u8], below: usize) {
    let Some((headers, _, _)) = heads(frame, below) else { return };
    // a short frame came from its socket as a whole, and this would say so; of a part of it the kernel wants no more than it has
    frame[2..4].copy_from_slice(&((below + headers) as u16).to_ne_bytes());
    let payload = frame.len() - VNET - below - headers;
    let segment = MTU.saturating_sub(headers);
    if segment == 0 || payload <= segment {
        frame[1] = GSO_NONE;
        frame[4..6].fill(0);
    } else {
        frame[4..6].copy_from_slice(&(segment as u16).to_ne_bytes());
    }
}

/// Header bytes, TCP offset and segment size of a TCP super-packet of more than one segment.
fn cut(frame: &[u8], below: usize) -> Option<(usize, usize, usize)> {
    heads(frame, below).filter(|(headers, _, gso_size)| frame.len() - VNET - below > headers + gso_size)
}

/// The same, be it of one segment.
fn heads(frame: &[u8], below: usize) -> Option<(usize, usize, usize)> {
    let gso_type = frame[1] & !GSO_ECN;
    let gso_size = usize::from(u16::from_ne_bytes([frame[4], frame[5]]));
    let l4 = usize::from(u16::from_ne_bytes([frame[6], frame[7]])).checked_sub(below)?;
    if !(gso_type == GSO_TCPV4 || gso_type == GSO_TCPV6) || gso_size == 0 || frame[0] & NEEDS_CSUM == 0 {
        return None;
    }
    let ip = &frame[VNET + below..];
    let tcp = usize::from(ip.get(l4 + 12)? >> 4) * 4;
    let headers = l4 + tcp;
    // of IPv4, whose header's own length the checksum goes by
    let fits = ip[0] >> 4 != 4 || usize::from(ip[0] & 15) * 4 <= l4;
    let plausible = fits && l4 >= 20 && tcp >= 20 && headers < ip.len() && headers + gso_size <= 65535;
    plausible.then_some((headers, l4, gso_size))
}

impl Segment {
    /// Which of its packet it is.
    #[cfg(test)]
    pub fn index(&self) -> u16 {
        self.index
    }

    /// Whether a switch takes the segments from this one up to `last` of the same packet as one frame.
    pub fn pass_switches(&self, last: &Segment) -> bool {
        self.index == last.index || self.packet.payload(self.index, last.index) > SWITCHED
    }

    /// This one and those behind it up to `last` of the same packet.
    pub fn up_to(&self, last: &Segment) -> impl Iterator<Item = Segment> + use<> {
        let packet = self.packet.clone();
        (self.index..=last.index).map(move |index| Segment { packet: packet.clone(), index })
    }

    /// Whether `next` is the segment right behind this one in the same packet.
    pub fn joins(&self, next: &Segment) -> bool {
        self.index.wrapping_add(1) == next.index && Rc::ptr_eq(&self.packet, &next.packet)
    }

    /// The frame for the segments from this one up to `last` of the same packet, all `marked` or none: `head` receives what has to be
    /// rewritten, the result is what follows it. Together they are one write to a device.
    pub fn run<'a>(&'a self, last: &Segment, marked: bool, head: &mut Vec<u8>) -> Ref<'a, [u8]> {
        let (packet, first, last) = (&*self.packet, self.index, last.index);
        let (data, start) = (packet.data.borrow(), packet.start());
        head.clear();
        if first == 0 && last + 1 == packet.segments {
            let copied = start + if marked { MARKED.min(packet.len as usize) } else { 0 };
            head.extend_from_slice(&data[..copied]);
            head[0] &= NEEDS_CSUM; // other flags are the receive side's
            mark(&mut head[start..]);
            return Ref::map(data, |d| &d[copied..start + packet.len as usize]);
        }
        let (headers, l4) = (usize::from(packet.headers), usize::from(packet.l4));
        head.extend_from_slice(&data[..start + headers]);
        let payload = packet.payload(first, last) as usize;
        rewrite(head, start, l4, first, last + 1 == packet.segments, packet.gso_size, payload);
        if first == last {
            head[1] = GSO_NONE;
            head[4..6].fill(0);
        }
        if marked {
            mark(&mut head[start..]);
        }
        let from = start + headers + usize::from(first) * usize::from(packet.gso_size);
        Ref::map(data, |d| &d[from..from + payload])
    }
}

/// Writes that congestion was experienced into the ECN field at the beginning of an IP packet; of IPv4 the checksum is
/// mended (RFC 1624, equation 3).
fn mark(ip: &mut [u8]) {
    match ip {
        [v4, tos, rest @ ..] if *v4 >> 4 == 4 && rest.len() >= MARKED - 2 => {
            let old = u16::from_be_bytes([*v4, *tos]);
            *tos |= CE;
            let new = u16::from_be_bytes([*v4, *tos]);
            let sum = u16::from_be_bytes([rest[8], rest[9]]);
            let sum = !fold(u32::from(!sum) + u32::from(!old) + u32::from(new));
            rest[8..10].copy_from_slice(&sum.to_be_bytes());
        }
        [v6, class, ..] if *v6 >> 4 == 6 => *class |= CE << 4,
        _ => {}
    }
}

/// Makes the copied headers those of a run that starts at segment `first` and carries `payload` bytes.
fn rewrite(head: &mut [u8], start: usize, l4: usize, first: u16, is_end: bool, gso_size: u16, payload: usize) {
    let (vnet, ip) = head.split_at_mut(start);
    let length = ip.len() + payload;
    let tcp_length = length - l4;
    let addresses = if ip[0] >> 4 == 4 {
        ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(first);
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip[10..12].fill(0);
        let header = usize::from(ip[0] & 15) * 4;
        let sum = !fold(add(0, &ip[..header]));
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        12..20
    } else {
        ip[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        8..40
    };
    let pseudo = fold(add(u32::from(TCP) + tcp_length as u32, &ip[addresses]));
    let tcp = &mut ip[l4..];
    let skipped = u32::from(first) * u32::from(gso_size);
    let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(skipped);
    tcp[4..8].copy_from_slice(&seq.to_be_bytes());
    if !is_end {
        tcp[13] &= !FIN_PSH;
    }
    if first != 0 {
        tcp[13] &= !CWR;
        vnet[1] &= !GSO_ECN;
    }
    // the whole one's may be more than a part has, which the kernel refuses
    vnet[2..4].copy_from_slice(&((start - VNET + l4 + tcp.len()) as u16).to_ne_bytes());
    tcp[16..18].copy_from_slice(&pseudo.to_be_bytes()); // the rest of the sum is left to the device, as it was
    vnet[0] = NEEDS_CSUM;
}

/// Adds 16-bit big-endian words (RFC 1071).
fn add(mut sum: u32, bytes: &[u8]) -> u32 {
    for word in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    }
    sum
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Buffers of the largest packet, used again by the thread that freed them.
pub mod pool {
    use super::LARGEST;
    use std::cell::RefCell;

    const KEPT: usize = 64;
    thread_local!(static FREE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) });

    /// A buffer of `LARGEST` bytes with any content.
    pub fn take() -> Box<[u8]> {
        FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; LARGEST].into())
    }

    /// Gives a buffer back; one of another size is simply freed.
    pub fn put(buffer: Box<[u8]>) {
        if buffer.len() == LARGEST {
            // at the thread's end the list may be gone already
            let _ = FREE.try_with(|free| {
                let mut free = free.borrow_mut();
                if free.len() < KEPT {
                    free.push(buffer);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A TCP super-packet of `payload` bytes over IPv4 or IPv6 whose payload counts up.
    fn frame(v6: bool, payload: usize, gso: u16) -> Box<[u8]> {
        let (l4, tcp) = (if v6 { 40 } else { 20 }, 32);
        let mut f = vec![0; VNET + l4 + tcp];
        f[0] = NEEDS_CSUM;
        f[1] = if v6 { GSO_TCPV6 } else { GSO_TCPV4 } | GSO_ECN;
        f[4..6].copy_from_slice(&gso.to_ne_bytes());
        f[6..8].copy_from_slice(&(l4 as u16).to_ne_bytes());
        f[8..10].copy_from_slice(&16u16.to_ne_bytes());
        f[2..4].copy_from_slice(&((l4 + tcp) as u16).to_ne_bytes());
        let ip = &mut f[VNET..];
        let length = l4 + tcp + payload;
        if v6 {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
            ip[6] = TCP;
            ip[8..40].copy_from_slice(&[0x20; 32]);
        } else {
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&100u16.to_be_bytes());
            ip[9] = TCP;
            ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        }
        ip[l4 + 4..l4 + 8].copy_from_slice(&0xffff_fff0u32.to_be_bytes());
        ip[l4 + 12] = 8 << 4;
        ip[l4 + 13] = 0x10 | FIN_PSH | CWR;
        f.extend((0..payload).map(|i| (i % 251) as u8));
        f.into()
    }

    fn written(first: &Segment, last: &Segment) -> Vec<u8> {
        let mut head = Vec::new();
        let rest = first.run(last, false, &mut head).to_vec();
        head.extend(rest);
        head
    }

    #[test]
    fn what_is_not_segmented_passes_unchanged() {
        let mut plain = frame(false, 100, 1448);
        plain[1] = GSO_NONE;
        let packet = Packet::new(plain.clone(), plain.len(), Layer::Ip);
        assert_eq!(packet.segments(), 1);
        let (segment, bytes) = Packet::segment(&packet, 0);
        assert_eq!(bytes as usize, plain.len() - VNET);
        assert_eq!(written(&segment, &segment), plain.to_vec());
    }

    /// An ECN field and, of IPv4, a right checksum.
    fn with_ecn(mut frame: Box<[u8]>, ecn: u8) -> Box<[u8]> {
        let ip = &mut frame[VNET..];
        if ip[0] >> 4 == 4 {
            ip[1] = 0xb8 | ecn;
            let sum = !fold(add(0, &ip[..20]));
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            ip[1] = ecn << 4 | 0x07;
        }
        frame
    }

    #[test]
    fn marks_are_written_into_whole_packets_and_into_parts() {
        for (v6, ecn, payload) in [(false, 2, 100), (false, 1, 6000), (true, 2, 100), (true, 1, 6000), (false, 3, 6000)]
        {
            let original = with_ecn(frame(v6, payload, 1448), ecn);
            let packet = Packet::new(original.clone(), original.len(), Layer::Ip);
            assert!(packet.ect());
            let last = packet.segments() - 1;
            for (from, to) in [(0, last), (0, 0), (last, last)] {
                let (first, last) = (Packet::segment(&packet, from).0, Packet::segment(&packet, to).0);
                let written = |marked| {
                    let mut head = Vec::new();
                    let rest = first.run(&last, marked, &mut head).to_vec();
                    head.extend(rest);
                    head
                };
                let (plain, mut marked) = (written(false), written(true));
                let ip = &mut marked[VNET..];
                if v6 {
                    assert_eq!(ip[1], 0x37);
                    ip[1] = plain[VNET + 1];
                } else {
                    assert_eq!((ip[1], fold(add(0, &ip[..20]))), (0xbb, 0xffff));
                    let sum = plain[VNET + 10..VNET + 12].to_owned();
                    ip[1] = plain[VNET + 1];
                    ip[10..12].copy_from_slice(&sum);
                }
                assert_eq!(marked, plain, "nothing else changes");
            }
        }
        for v6 in [false, true] {
            let original = with_ecn(frame(v6, 100, 1448), 0);
            assert!(!Packet::new(original.clone(), original.len(), Layer::Ip).ect());
        }
        assert!(!Packet::new([0; VNET + 1].into(), VNET + 1, Layer::Ip).ect());
    }

    #[test]
    fn a_flow_is_told_by_addresses_protocol_and_ports() {
        for v6 in [false, true] {
            let flow = |at: usize, to: u8| {
                let mut frame = frame(v6, 100, 1448);
                frame[VNET + at] = to;
                Packet::new(frame.clone(), frame.len(), Layer::Ip).flow()
            };
            let l4 = if v6 { 40 } else { 20 };
            let same = flow(l4 + 4, 1);
            assert_eq!(same, flow(l4 + 4, 2), "a sequence number");
            let others = [flow(l4 + 1, 9), flow(l4 + 3, 9), flow(l4 - 1, 9), flow(if v6 { 6 } else { 9 }, UDP)];
            assert!(others.iter().all(|other| *other != same && u64::from(*other) < FLOWS));
            // of fragments there are no ports
            if !v6 {
                let fragment = |port| {
                    let mut frame = frame(v6, 100, 1448);
                    (frame[VNET + 6], frame[VNET + 21]) = (0x20, port);
                    Packet::new(frame.clone(), frame.len(), Layer::Ip).flow()
                };
                assert_eq!(fragment(1), fragment(2));
            }
        }
        // whatever is cut short
        for bytes in VNET + 1..VNET + 60 {
            for first in [0x45, 0x65] {
                let packet = Packet::new(vec![first; bytes].into(), bytes, Layer::Ip);
                assert!(u64::from(packet.flow()) < FLOWS);
            }
        }
    }

    /// The kernel refuses a frame that is shorter than the header that it is told of.
    #[test]
    fn a_part_has_no_more_header_than_bytes() {
        for framed in [false, true] {
            let mut whole = frame(false, 3000, 1448);
            whole[2..4].copy_from_slice(&1540u16.to_ne_bytes());
            let (whole, layer) = if framed { (on_ethernet(&whole), Layer::Ethernet) } else { (whole, Layer::Ip) };
            let packet = Packet::new(whole.clone(), whole.len(), layer);
            assert_eq!(packet.segments(), 3);
            for (first, last) in [(0, 0), (0, 1), (2, 2)] {
                let out = written(&Packet::segment(&packet, first).0, &Packet::segment(&packet, last).0);
                assert!(usize::from(u16::from_ne_bytes([out[2], out[3]])) <= out.len() - VNET, "{first} to {last}");
            }
        }
    }

    #[test]
    fn nonsense_headers_pass_as_one_packet() {
        let mut short = frame(false, 3000, 1448);
        short[VNET + 20 + 12] = 2 << 4; // a TCP header of 8 bytes
        let n = short.len();
        assert_eq!(Packet::new(short, n, Layer::Ip).segments(), 1);
        let mut long = frame(false, 3000, 1448);
        long[VNET] = 0x4f; // an IP header of 60 bytes in front of a TCP header at 20
        assert_eq!(Packet::new(long, n, Layer::Ip).segments(), 1);
        assert!(pair(&[0; 4]).is_none() && pair(&[0; 60]).is_none());
    }

    #[test]
    fn most_of_a_mostly_dropped_packet_is_given_back() {
        let mut buffer = pool::take();
        let whole = frame(false, 60_000, 1448);
        buffer[..whole.len()].copy_from_slice(&whole);
        let packet = Packet::new(buffer, whole.len(), Layer::Ip);
        let before = written(&Packet::segment(&packet, 0).0, &Packet::segment(&packet, 1).0);
        packet.keep_up_to(1);
        assert!(packet.data.borrow().len() < 3100);
        assert_eq!(written(&Packet::segment(&packet, 0).0, &Packet::segment(&packet, 1).0), before);
    }

    /// The same frame of a TAP device.
    fn on_ethernet(frame: &[u8]) -> Box<[u8]> {
        let mut found = frame[..VNET].to_vec();
        for at in [2, 6] {
            let length = u16::from_ne_bytes([frame[at], frame[at + 1]]) + 14;
            found[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        }
        found.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        found.extend(&frame[VNET..]);
        found.into()
    }

    #[test]
    fn a_super_packet_that_came_through_a_switch_has_its_segments_again() {
        for (payload, segments) in [(6000, 5), (1429, 2), (1400, 1), (1428, 1)] {
            // as MPTCP sends it: 20 bytes more of options
            let mut original = frame(false, payload + 20, 1428);
            original[VNET + 20 + 12] = 13 << 4;
            let whole = on_ethernet(&original);
            let mut switched = whole.clone();
            switched[4..6].copy_from_slice(&(SWITCHED as u16).to_ne_bytes());
            switched[2..4].copy_from_slice(&((whole.len() - VNET) as u16).to_ne_bytes());
            let packet = Packet::new(switched, whole.len(), Layer::Switch);
            assert_eq!(packet.segments(), segments);
            let (first, bytes) = Packet::segment(&packet, 0);
            assert_eq!(bytes, if segments == 1 { 72 + payload as u32 } else { 1500 });
            let last = Packet::segment(&packet, segments - 1).0;
            let out = written(&first, &last);
            // never more than any of its segments has
            assert_eq!(u16::from_ne_bytes([out[2], out[3]]), 14 + 72);
            if segments > 1 {
                assert_eq!((out[..2].to_vec(), &out[4..]), (whole[..2].to_vec(), &whole[4..]));
            } else {
                assert_eq!((out[1], &out[4..6]), (GSO_NONE, &[0, 0][..]));
            }
            // two segments that a switch would think one go by themselves
            assert_eq!(first.pass_switches(&last), payload != 1429);
            assert_eq!(first.up_to(&last).count(), usize::from(segments));
        }
    }

    #[test]
    fn over_ethernet_all_is_the_same_but_for_the_header_in_front() {
        for (v6, payload) in [(false, 100), (false, 6000), (true, 100), (true, 60_000)] {
            let plain = with_ecn(frame(v6, payload, 1448), 2);
            let framed = on_ethernet(&plain);
            let (bytes, more) = (plain.len(), framed.len());
            let (plain, framed) = (Packet::new(plain, bytes, Layer::Ip), Packet::new(framed, more, Layer::Ethernet));
            assert_eq!((plain.segments(), plain.flow(), plain.ect()), (framed.segments(), framed.flow(), framed.ect()));
            let last = plain.segments() - 1;
            framed.keep_up_to(last);
            for (from, to, marked) in [(0, last, false), (0, last, true), (0, 0, true), (last, last, false)] {
                let out = |packet: &Rc<Packet>| {
                    let ((first, bytes), (last, _)) = (Packet::segment(packet, from), Packet::segment(packet, to));
                    let mut head = Vec::new();
                    let rest = first.run(&last, marked, &mut head).to_vec();
                    (bytes, [head, rest].concat())
                };
                let ((size, plain), (same, framed)) = (out(&plain), out(&framed));
                assert_eq!((size, &on_ethernet(&plain)[..]), (same, &framed[..]));
            }
        }
        let mut group = on_ethernet(&frame(true, 100, 1448));
        assert!(!is_multicast(&group));
        group[VNET..VNET + 2].fill(0x33);
        assert!(is_multicast(&group));
        // ARP
        let arp = [vec![0; VNET + 14], vec![0, 1, 8, 0, 6, 4, 0, 1], vec![0; 20]].concat();
        let packet = Packet::new(arp.clone().into(), arp.len(), Layer::Ethernet);
        let (segment, bytes) = Packet::segment(&packet, 0);
        assert_eq!((bytes, packet.ect(), written(&segment, &segment)), (28, false, arp));
    }

    proptest! {
        /// Any cut of a super-packet into runs carries the same bytes at the same sequence numbers, with right headers.
        #[test]
        fn runs_carry_the_stream(v6: bool, payload in 2u32..60_000, gso in 500u16..1461, cuts in prop::collection::vec(1u16..12, 1..40)) {
            let original = frame(v6, payload as usize, gso);
            let packet = Packet::new(original.clone(), original.len(), Layer::Ip);
            let n = packet.segments();
            prop_assert_eq!(u32::from(n), payload.div_ceil(u32::from(gso)));
            let (l4, mut stream, mut total, mut at) = (if v6 { 40 } else { 20 }, Vec::new(), 0, 0u16);
            for cut in cuts.iter().cycle() {
                if at >= n { break }
                let last = (at + cut - 1).min(n - 1);
                let (a, _) = Packet::segment(&packet, at);
                let (b, _) = Packet::segment(&packet, last);
                for i in at..=last {
                    total += Packet::segment(&packet, i).1 - if n > 1 { l4 + 32 } else { 0 };
                }
                let out = written(&a, &b);
                let ip = &out[VNET..];
                let (src, dst) = pair(&out).unwrap();
                prop_assert_eq!((src, dst), pair(&original).unwrap());
                let seq = u32::from_be_bytes(ip[l4 as usize + 4..l4 as usize + 8].try_into().unwrap());
                prop_assert_eq!(seq, 0xffff_fff0u32.wrapping_add(u32::from(at) * u32::from(gso)));
                let flags = ip[l4 as usize + 13];
                prop_assert_eq!(flags & FIN_PSH != 0, last + 1 == n);
                prop_assert_eq!(flags & CWR != 0, at == 0);
                if n > 1 {
                    prop_assert_eq!(out[1] == GSO_NONE, at == last);
                    if v6 {
                        prop_assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])) + 40, ip.len());
                    } else {
                        prop_assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
                        if !(at == 0 && last + 1 == n) {
                            prop_assert_eq!(fold(add(0, &ip[..20])), 0xffff);
                            prop_assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), 100 + at);
                        }
                    }
                }
                stream.extend_from_slice(&ip[l4 as usize + 32..]);
                at = last + 1;
            }
            prop_assert_eq!(&stream[..], &original[VNET + l4 as usize + 32..]);
            if n > 1 { prop_assert_eq!(total, payload); }
        }
    }
}
