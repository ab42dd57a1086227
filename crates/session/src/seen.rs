//! What a far end sees of a connection, for who looks for what lies between the two.
//!
//! It is asked with an Attach whose flags are [`LOOK`]; a far end that does not know that denies it as unsupported. The answer
//! is the question's number and fields: kind, length, value. Fields that a reader does not know it passes over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;

use super::codec::Reader;

/// Flags of an Attach that asks for [`Seen`].
pub const LOOK: u8 = 1;

/// Of [`Seen::knows`]: over UDP it tells what arrives of a packet.
pub const ECHO: u8 = 1;
/// Of [`Seen::knows`]: it hears what the client sees of the connection.
pub const HEARS: u8 = 2;

/// What a connection is at the far end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Transport {
    /// Not told.
    #[default]
    Unknown = 0,
    /// TCP: it began without MPTCP's option, or the handshake lost it.
    Tcp = 1,
    /// MPTCP.
    Mptcp = 2,
    /// It was MPTCP and has fallen back.
    Fallen = 3,
}

/// One connection as an end of it sees it, the far end where not said otherwise; what it could not tell is zero or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Where the connection comes from.
    pub peer: Option<SocketAddr>,
    /// To which address and port of the far end's it came.
    pub local: Option<SocketAddr>,
    /// What it is.
    pub transport: Transport,
    /// MPTCP subflows that are established.
    pub subflows: u8,
    /// Options agreed upon, as in TCP_INFO: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
    pub options: u8,
    /// What the client's window and its own are scaled by [bit].
    pub scales: (u8, u8),
    /// The largest segment that it sends, and what it has announced to take [byte].
    pub mss: (u32, u32),
    /// The path MTU that its kernel believes in [byte].
    pub pmtu: u32,
    /// What its kernel would agree upon, as `options`, and 16: MPTCP.
    pub able: u8,
    /// Where it answers STAMP; 0: nowhere.
    pub stamp_port: u16,
    /// What it knows beyond what it always did: [`ECHO`], [`HEARS`]. None: it is of a version that does not tell.
    pub knows: Option<u8>,
    /// The time of day when it says this [ns since 1970].
    pub time_of_day: Option<u64>,
    /// Further subflows that it accepts in a connection.
    pub joins: Option<u8>,
    /// What its clock of TCP timestamps shows in this connection when it says this (RFC 7323).
    pub timestamp: Option<u32>,
}

const PEER: u8 = 1;
const LOCAL: u8 = 2;
const TRANSPORT: u8 = 3;
const TCP: u8 = 4;
const ABLE: u8 = 5;
const STAMP: u8 = 6;
const KNOWS: u8 = 7;
const TIME_OF_DAY: u8 = 8;
const JOINS: u8 = 9;
const TIMESTAMP: u8 = 10;

impl Seen {
    pub(super) fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = number.to_be_bytes().to_vec();
        let mut push = |kind: u8, value: &[u8]| {
            out.extend_from_slice(&[kind, value.len() as u8]);
            out.extend_from_slice(value);
        };
        for (kind, address) in [(PEER, self.peer), (LOCAL, self.local)] {
            if let Some(address) = address {
                push(kind, &socket(address));
            }
        }
        push(TRANSPORT, &[self.transport as u8, self.subflows]);
        let tcp = [self.mss.0, self.mss.1, self.pmtu].map(u32::to_be_bytes).concat();
        push(TCP, &[&[self.options, self.scales.0, self.scales.1], &tcp[..]].concat());
        push(ABLE, &[self.able]);
        push(STAMP, &self.stamp_port.to_be_bytes());
        let told = [(KNOWS, self.knows.map(|m| vec![m])), (JOINS, self.joins.map(|n| vec![n]))];
        let clocks = [
            (TIME_OF_DAY, self.time_of_day.map(|t| t.to_be_bytes().to_vec())),
            (TIMESTAMP, self.timestamp.map(|t| t.to_be_bytes().to_vec())),
        ];
        for (kind, value) in told.into_iter().chain(clocks) {
            value.into_iter().for_each(|value| push(kind, &value));
        }
        out
    }

    pub(super) fn decode(body: &[u8]) -> Option<(u64, Seen)> {
        let mut reader = Reader::new(body);
        let number = reader.u64()?;
        let mut seen = Seen::default();
        while !reader.is_empty() {
            let (kind, length) = (reader.u8()?, reader.u8()?);
            // a later version may add to the end of a field
            let mut field = Reader::new(reader.take(length.into())?);
            match kind {
                PEER => seen.peer = Some(read_socket(&mut field)?),
                LOCAL => seen.local = Some(read_socket(&mut field)?),
                TRANSPORT => {
                    let known = [Transport::Tcp, Transport::Mptcp, Transport::Fallen];
                    let code = field.u8()?;
                    seen.transport = known.into_iter().find(|t| *t as u8 == code).unwrap_or_default();
                    seen.subflows = field.u8()?;
                }
                TCP => {
                    seen.options = field.u8()?;
                    seen.scales = (field.u8()?, field.u8()?);
                    seen.mss = (field.u32()?, field.u32()?);
                    seen.pmtu = field.u32()?;
                }
                ABLE => seen.able = field.u8()?,
                STAMP => seen.stamp_port = field.u16()?,
                KNOWS => seen.knows = Some(field.u8()?),
                TIME_OF_DAY => seen.time_of_day = Some(field.u64()?),
                JOINS => seen.joins = Some(field.u8()?),
                TIMESTAMP => seen.timestamp = Some(field.u32()?),
                _ => {}
            }
        }
        Some((number, seen))
    }
}

fn socket(address: SocketAddr) -> Vec<u8> {
    let ip = match address.ip() {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    [ip, address.port().to_be_bytes().to_vec()].concat()
}

fn read_socket(field: &mut Reader<'_>) -> Option<SocketAddr> {
    // four or sixteen bytes of address before the port: what is left over says which
    let mut v6 = field.clone();
    match v6.array::<16>() {
        Some(ip) => Some(SocketAddr::new(Ipv6Addr::from(ip).into(), v6.u16()?)),
        None => Some(SocketAddr::new(Ipv4Addr::from(field.array::<4>()?).into(), field.u16()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_what_is_unknown_is_passed_over() {
        for address in ["192.0.2.1:7", "[2001:db8::1]:65535"] {
            let seen = Seen {
                peer: address.parse().ok(),
                local: address.parse().ok(),
                transport: Transport::Fallen,
                subflows: 2,
                options: 7,
                scales: (7, 10),
                mss: (1448, 1460),
                pmtu: 1500,
                able: 23,
                stamp_port: 862,
                knows: Some(ECHO),
                time_of_day: Some(u64::MAX),
                joins: Some(2),
                timestamp: Some(0),
            };
            let mut body = seen.encode(9);
            assert_eq!(Seen::decode(&body), Some((9, seen.clone())));
            body.extend([200, 3, 1, 2, 3]);
            assert_eq!(Seen::decode(&body), Some((9, seen)), "a field of a later version");
            body.extend([201, 9, 1]);
            assert_eq!(Seen::decode(&body), None, "a field that is cut");
        }
    }
}
