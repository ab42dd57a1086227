//! What the kernel tells about MPTCP connections (include/uapi/linux/mptcp.h, enum mptcp_event_type).

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::netlink;

/// An event of any MPTCP connection in this network stack; `token` says of which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub kind: EventKind,
    pub token: u32,
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    /// Error number of a subflow that ended.
    pub error: Option<i32>,
    /// Reason in a received MP_TCPRST (RFC 8684, section 3.6).
    pub reset: Option<u32>,
    /// The connection was accepted, not begun, at this end.
    pub serves: bool,
}

impl Event {
    /// Why a subflow ended, where that was told.
    pub fn why(&self) -> Option<String> {
        let reset = self.reset.filter(|&code| code != 0).map(|code| reset_reason(code).to_owned());
        reset.or_else(|| Some(io::Error::from_raw_os_error(self.error?).to_string()))
    }
}

/// A subflow's end without a reason: a server over its limit lets the handshake end, then closes without giving one.
pub(crate) const UNEXPLAINED: &str =
    "closed by the far end; perhaps it allows too few subflows (`ip mptcp limits set subflows 8`)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Further subflows may be created.
    Established,
    /// The connection is gone.
    Closed,
    SubflowEstablished,
    SubflowClosed,
    Other,
}

/// All events in one datagram from a socket that is subscribed to family `family`.
pub(crate) fn parse(datagram: &[u8], family: u16) -> Vec<Event> {
    netlink::messages(datagram)
        .filter(|&(kind, _, _)| kind == family)
        .filter_map(|(_, _, body)| body.get(4..).map(|attributes| one(body[0], attributes)))
        .collect()
}

fn one(command: u8, attributes: &[u8]) -> Event {
    let kind = match command {
        2 => EventKind::Established,
        3 => EventKind::Closed,
        10 => EventKind::SubflowEstablished,
        11 => EventKind::SubflowClosed,
        _ => EventKind::Other,
    };
    let (mut token, mut error, mut reset, mut serves) = (0, None, None, false);
    let (mut source, mut target): (Option<IpAddr>, Option<IpAddr>) = (None, None);
    let (mut source_port, mut target_port) = (0, 0);
    let u32_of = |v: &[u8]| v.try_into().ok().map(u32::from_ne_bytes);
    // the ports of events are in network order
    let port_of = |v: &[u8]| v.try_into().ok().map_or(0, u16::from_be_bytes);
    for (attribute, value) in netlink::attributes(attributes) {
        match attribute {
            1 => token = u32_of(value).unwrap_or(0),
            5 | 6 => source = netlink::address(value),
            7 | 8 => target = netlink::address(value),
            9 => source_port = port_of(value),
            10 => target_port = port_of(value),
            12 => error = value.first().map(|&e| i32::from(e)).filter(|&e| e != 0),
            16 => reset = u32_of(value),
            // newer kernels say it by a flag too
            13 => serves |= value.first().is_some_and(|flags| flags & 2 != 0),
            18 => serves |= value.first().is_some_and(|&side| side != 0),
            _ => {}
        }
    }
    let end = |ip: Option<IpAddr>, port| ip.map(|ip| SocketAddr::new(ip.to_canonical(), port));
    Event { kind, token, local: end(source, source_port), remote: end(target, target_port), error, reset, serves }
}

/// Why the far end reset a subflow, in words.
pub(crate) fn reset_reason(code: u32) -> &'static str {
    match code {
        1 => "MPTCP error at the far end",
        2 => "the far end lacks resources: too many subflows there (`ip mptcp limits set subflows 8`)",
        3 => "prohibited at the far end: too many subflows there (`ip mptcp limits set subflows 8`), or a policy",
        4 => "too much outstanding data",
        5 => "unacceptable performance",
        6 => "a middlebox interferes",
        _ => "reset by the far end",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Request;

    #[test]
    fn a_closed_subflow_is_read_with_its_reason() {
        let mut r = Request::new(0x22, 0, &[11, 1, 0, 0]);
        r.u32(1, 77).attribute(5, &[10, 0, 0, 1]).attribute(7, &[10, 0, 0, 2]);
        r.attribute(9, &[0x10, 0x01]).attribute(10, &[0x14, 0x96]).u8(12, 111).u32(16, 3);
        let datagram = r.finish(0);
        let event = Event {
            kind: EventKind::SubflowClosed,
            token: 77,
            local: "10.0.0.1:4097".parse().ok(),
            remote: "10.0.0.2:5270".parse().ok(),
            error: Some(111),
            reset: Some(3),
            serves: false,
        };
        assert_eq!(parse(&datagram, 0x22), [event]);
        assert_eq!(parse(&datagram, 0x23), []);
        for (attribute, value) in [(18, 1), (13, 2)] {
            let mut r = Request::new(0x22, 0, &[2, 1, 0, 0]);
            r.u32(1, 77).u8(attribute, value);
            assert!(parse(&r.finish(0), 0x22)[0].serves);
        }
    }
}
