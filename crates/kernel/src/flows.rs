//! What the programs keep for user space: the list of live flows, sums by path, counts. The mirror of `bpf/list.h` and
//! of `counts` in `bpf/socket.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::record::CaState;

const AF_INET: u32 = 2;
const NO_PHASE: u32 = u32::MAX;

/// # Safety
/// Every bit pattern is a value of the type, and it has no padding.
unsafe trait Plain: Copy {}

/// A value as it lies in a map; `None` if the sizes differ.
fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: as many bytes as the type has, and the trait promises the rest
    (bytes.len() == size_of::<T>()).then(|| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Address {
    local: [u8; 16],
    remote: [u8; 16],
    family: u32,
    pad: u32,
}
// SAFETY: integers, 40 bytes
unsafe impl Plain for Address {}

impl Address {
    fn ip(&self, bytes: [u8; 16]) -> IpAddr {
        let [a, b, c, d, ..] = bytes;
        match self.family {
            AF_INET => Ipv4Addr::new(a, b, c, d).into(),
            // an IPv6 socket may carry IPv4
            _ => Ipv6Addr::from(bytes).to_canonical(),
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Row {
    address: Address,
    local_port: u16,
    remote_port: u16,
    token: u32,
    subflow: u32,
    slot: u32,
    opened_us: u64,
    updated_us: u64,
    bytes_acked: u64,
    bytes_sent: u64,
    bytes_received: u64,
    pace: u64,
    word: [u64; 2],
    cwnd: u32,
    ssthresh: u32,
    srtt_us: u32,
    in_flight: u32,
    mss: u32,
    ca_state: u32,
    retransmitted: u32,
    subflows: u32,
    phase: u32,
    pad: u32,
    state: [u8; 512],
}
pub(crate) const ROW_BYTES: usize = size_of::<Row>();
const _: () = assert!(ROW_BYTES == 672);
// SAFETY: integers, 672 bytes without padding: the sizes of the fields add up to it
unsafe impl Plain for Row {}

/// One live TCP flow or MPTCP subflow under a controller, as it was at its last ACK or up to 20 ms before.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowView {
    /// Its number, in the order in which flows came to this controller, from 1.
    pub id: u64,
    /// Token of the MPTCP connection, as `ss -M` shows it; `None` for plain TCP.
    pub token: Option<u32>,
    /// The subflow's number in its connection, from 1 on; 0 for plain TCP.
    pub subflow: u32,
    /// Live subflows that the controller couples, this one included.
    pub subflows: u32,
    /// Own address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// When it came under the controller, and when this view was taken: monotonic (us).
    pub opened_us: u64,
    /// As above.
    pub updated_us: u64,
    /// Bytes that the peer has acked.
    pub bytes_acked: u64,
    /// Bytes sent, repeated ones again.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Packets retransmitted.
    pub retransmitted: u32,
    /// Window (packet).
    pub cwnd: u32,
    /// Slow start threshold (packet); `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT (us); 0 before the first sample.
    pub srtt_us: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Bytes of a full packet.
    pub mss: u32,
    /// Where TCP's loss recovery stands, if it is known.
    pub recovery: Option<CaState>,
    /// Pace that the controller asks for (bytes per second); 0: none.
    pub pace_bytes_per_s: u64,
    /// The controller's phase, in words.
    pub phase: &'static str,
    /// Available bandwidth that it measured (bit per second); `None` for controllers that measure none, and before the
    /// first result.
    pub available_bps: Option<u64>,
    /// What it publishes to siblings; the meaning is the controller's.
    pub words: [u64; 2],
    /// Its private state, byte for byte.
    pub state: Vec<u8>,
}

impl FlowView {
    pub(crate) fn read(controller: &str, state_bytes: usize, id: u64, bytes: &[u8]) -> Option<FlowView> {
        let row: Row = read(bytes)?;
        let address = |ip, port| SocketAddr::new(row.address.ip(ip), port);
        let measures = matches!(controller, "imtcp" | "imtcp_bg" | "gleaner");
        Some(FlowView {
            id,
            token: (row.token != 0).then_some(row.token),
            subflow: row.subflow,
            subflows: row.subflows,
            local: address(row.address.local, row.local_port),
            remote: address(row.address.remote, row.remote_port),
            opened_us: row.opened_us,
            updated_us: row.updated_us,
            bytes_acked: row.bytes_acked,
            bytes_sent: row.bytes_sent,
            bytes_received: row.bytes_received,
            retransmitted: row.retransmitted,
            cwnd: row.cwnd,
            ssthresh: (row.ssthresh < pathcast_congestion::INFINITE).then_some(row.ssthresh),
            srtt_us: row.srtt_us,
            in_flight: row.in_flight,
            mss: row.mss,
            recovery: CaState::ALL.get(row.ca_state as usize).copied(),
            pace_bytes_per_s: row.pace,
            phase: phase(controller, row.phase, row.cwnd < row.ssthresh),
            available_bps: (measures && row.word[0] > 0).then(|| row.word[0].saturating_mul(8)),
            words: row.word,
            state: row.state.get(..state_bytes)?.to_vec(),
        })
    }
}

/// The names of the enums in the controllers' headers.
fn phase(controller: &str, phase: u32, slow: bool) -> &'static str {
    let names: &[&'static str] = match controller {
        "gsam" | "subflow_switch" => &["slow-start", "smooth-transition", "avoidance"],
        "hystartpp" => &["slow-start", "conservative-slow-start", "avoidance"],
        "adaptive_start" => &["slow-start", "hold", "avoidance"],
        "ledbatpp" => &["first-slow-start", "avoidance", "slowdown", "ramp"],
        "bbr3" => &["startup", "drain", "down", "cruise", "refill", "up", "probe-rtt"],
        "gleaner" => &["start", "run", "yield"],
        "imtcp" | "imtcp_bg" => &["pass", "hold", "train", "wait"],
        _ => &[],
    };
    match names.get(phase as usize) {
        Some(name) if phase != NO_PHASE => name,
        _ if slow => "slow-start",
        _ => "avoidance",
    }
}

/// What the flows between two addresses did that have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSum {
    /// Own address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// Flows that have ended.
    pub flows: u64,
    /// Bytes that the peer has acked.
    pub bytes_acked: u64,
    /// Bytes sent, repeated ones again.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
}

impl PathSum {
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<PathSum> {
        let address: Address = read(key)?;
        let [flows, bytes_acked, bytes_sent, bytes_received, retransmitted]: [u64; 5] = read(value)?;
        let (local, remote) = (address.ip(address.local), address.ip(address.remote));
        Some(PathSum { local, remote, flows, bytes_acked, bytes_sent, bytes_received, retransmitted })
    }
}
pub(crate) const SUM_BYTES: usize = size_of::<[u64; 5]>();
// SAFETY: integers without padding
unsafe impl Plain for [u64; 5] {}

/// Counts since a controller was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Flows that came.
    pub opened: u64,
    /// Those that have ended.
    pub closed: u64,
    /// Flows for which the kernel had no memory: they run as the kernel's Reno.
    pub unstored: u64,
    /// Subflows that found all groups or all slots of theirs taken: each runs as a connection of its own.
    pub ungrouped: u64,
    /// Flows that found the list full: they are counted, but not shown.
    pub unlisted: u64,
    /// Bytes that peers have acked, of flows that have ended.
    pub bytes_acked: u64,
    /// Bytes sent, repeated ones again; as above.
    pub bytes_sent: u64,
    /// Bytes received; as above.
    pub bytes_received: u64,
    /// Records that were lost; only the tests record.
    pub lost: u64,
}
// SAFETY: integers without padding
unsafe impl Plain for Counts {}

impl Counts {
    pub(crate) fn read(bytes: &[u8]) -> Option<Counts> {
        read(bytes.get(..size_of::<Counts>())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_bytes_of_another_size_are_not() {
        let mut bytes = vec![0u8; 672];
        bytes[..4].copy_from_slice(&[10, 77, 0, 1]);
        bytes[16..20].copy_from_slice(&[10, 77, 0, 2]);
        bytes[32] = AF_INET as u8;
        bytes[40..44].copy_from_slice(&[0x39, 0x30, 0xbb, 0x01]);
        bytes[104..112].copy_from_slice(&1_000_000u64.to_ne_bytes()); // word[0]
        bytes[120..124].copy_from_slice(&10u32.to_ne_bytes());
        bytes[124..128].copy_from_slice(&pathcast_congestion::INFINITE.to_ne_bytes());
        bytes[152] = 2;
        let view = FlowView::read("imtcp_bg", 24, 7, &bytes).unwrap();
        assert_eq!((view.local, view.remote), ("10.77.0.1:12345".parse().unwrap(), "10.77.0.2:443".parse().unwrap()));
        assert_eq!((view.id, view.cwnd, view.ssthresh, view.token), (7, 10, None, None));
        assert_eq!((view.phase, view.available_bps, view.state.len()), ("train", Some(8_000_000), 24));
        assert_eq!(FlowView::read("lia", 4, 7, &bytes).unwrap().available_bps, None);
        assert_eq!(FlowView::read("lia", 4, 7, &bytes[1..]), None);
        assert_eq!(FlowView::read("lia", 513, 7, &bytes), None);
    }

    #[test]
    fn phases_have_names() {
        assert_eq!(phase("gsam", 1, true), "smooth-transition");
        assert_eq!(phase("lia", NO_PHASE, true), "slow-start");
        assert_eq!(phase("lia", NO_PHASE, false), "avoidance");
        assert_eq!(phase("gsam", 9, false), "avoidance");
    }
}
