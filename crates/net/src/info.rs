//! What the kernel says about a socket: struct tcp_info, struct mptcp_info and MPTCP_FULL_INFO
//! (include/uapi/linux/tcp.h, include/uapi/linux/mptcp.h).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::Socket;

/// States of struct tcp_info.
pub(crate) const TCP_ESTABLISHED: u8 = 1;
pub(crate) const TCP_CLOSE: u8 = 7;
const TCP_TIMESTAMP: i32 = 24;
const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_FULL_INFO: i32 = 4;
const TCP_INFO_BYTES: usize = 248;
const SUBFLOW_INFO_BYTES: usize = 264;
const MPTCP_INFO_BYTES: usize = 96;
/// The kernel allows 8 subflows beside the first from its own path manager, and no more are asked for here.
const MAX_SUBFLOWS: usize = 16;

/// One TCP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TcpInfo {
    /// TCP_ESTABLISHED is 1.
    pub state: u8,
    /// Retransmission timeouts in a row.
    pub timeouts: u8,
    /// Agreed upon: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
    pub options: u8,
    /// What the other end's window and our own are scaled by [bit].
    pub scales: (u8, u8),
    pub pmtu: u32,
    /// What was announced to the other end [byte].
    pub advertised_mss: u32,
    pub mss: u32,
    pub unacked: u32,
    /// Since anything was last acknowledged by the other end, SACKs included [ms].
    pub last_ack_ms: u32,
    pub rtt_us: u32,
    pub cwnd: u32,
    pub retransmits: u32,
    pub bytes_acked: u64,
    /// [byte/s]
    pub pacing_rate: u64,
    /// Given to it and not sent yet [byte].
    pub unsent: u32,
    /// Absent until a round trip was measured.
    pub min_rtt_us: Option<u32>,
    pub bytes_sent: u64,
    pub bytes_retransmitted: u64,
    /// What the other end takes beyond what it has acknowledged, of a subflow at the level of the connection [byte].
    pub window: u32,
    /// Retransmission timeouts since the beginning; absent before Linux 6.7.
    pub all_timeouts: Option<u32>,
}

/// One subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubflowInfo {
    pub id: u32,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub tcp: TcpInfo,
}

/// One MPTCP connection.
#[derive(Clone, Debug)]
pub(crate) struct MptcpInfo {
    pub token: u32,
    pub fallback: bool,
    /// Acknowledged at the level of the connection; absent before Linux 6.5 [byte].
    pub bytes_acked: Option<u64>,
    /// Given to subflows, each byte counted once; absent as that [byte].
    pub bytes_sent: Option<u64>,
    /// Given to the socket and not acknowledged at the level of the connection [byte].
    pub unacked: u64,
    pub subflows: Vec<SubflowInfo>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

impl TcpInfo {
    /// From struct tcp_info; what an older kernel does not fill is zero.
    fn parse(b: &[u8]) -> TcpInfo {
        TcpInfo {
            state: b.first().copied().unwrap_or(0),
            timeouts: b.get(2).copied().unwrap_or(0),
            options: b.get(5).map_or(0, |&o| o & 15),
            scales: b.get(6).map_or((0, 0), |&w| (w & 15, w >> 4)),
            pmtu: u32_at(b, 60),
            advertised_mss: u32_at(b, 84),
            mss: u32_at(b, 16),
            unacked: u32_at(b, 24),
            last_ack_ms: u32_at(b, 56),
            rtt_us: u32_at(b, 68),
            cwnd: u32_at(b, 80),
            retransmits: u32_at(b, 100),
            bytes_acked: u64_at(b, 120),
            pacing_rate: u64_at(b, 104),
            unsent: u32_at(b, 144),
            min_rtt_us: Some(u32_at(b, 148)).filter(|&r| r != u32::MAX && r != 0),
            bytes_sent: u64_at(b, 200),
            bytes_retransmitted: u64_at(b, 208),
            window: u32_at(b, 228),
            all_timeouts: b.get(240..242).and_then(|b| b.try_into().ok()).map(|b| u16::from_ne_bytes(b).into()),
        }
    }
}

/// Asks a socket; the number of bytes that the kernel filled.
fn getsockopt(socket: &Socket, level: i32, name: i32, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: the buffer is as long as is said
    let done =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), &raw mut length) };
    if done == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// TCP_INFO of a TCP socket, or of an MPTCP socket that has fallen back.
pub(crate) fn tcp(socket: &Socket) -> io::Result<TcpInfo> {
    let mut buffer = [0; TCP_INFO_BYTES];
    let n = getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer)?;
    Ok(TcpInfo::parse(&buffer[..n.min(TCP_INFO_BYTES)]))
}

#[repr(C)]
struct FullInfo {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
    mptcp_info: [u8; MPTCP_INFO_BYTES],
}

/// The connection and all its subflows; `None` when it has fallen back to TCP (the kernel then answers no MPTCP option).
///
/// # Errors
/// The system's.
pub(crate) fn mptcp(socket: &Socket) -> io::Result<Option<MptcpInfo>> {
    let mut flows = [[0u8; TCP_INFO_BYTES]; MAX_SUBFLOWS];
    let mut ends = [[0u8; SUBFLOW_INFO_BYTES]; MAX_SUBFLOWS];
    let mut full = FullInfo {
        size_tcpinfo_kernel: 0,
        size_tcpinfo_user: TCP_INFO_BYTES as u32,
        size_sfinfo_kernel: 0,
        size_sfinfo_user: SUBFLOW_INFO_BYTES as u32,
        num_subflows: 0,
        size_arrays_user: MAX_SUBFLOWS as u32,
        subflow_info: ends.as_mut_ptr() as u64,
        tcp_info: flows.as_mut_ptr() as u64,
        mptcp_info: [0; MPTCP_INFO_BYTES],
    };
    let mut length = size_of::<FullInfo>() as libc::socklen_t;
    // SAFETY: the structure has the kernel's layout, and its two pointers are to arrays of the sizes that it names
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), SOL_MPTCP, MPTCP_FULL_INFO, (&raw mut full).cast(), &raw mut length)
    };
    if done != 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT) => Ok(connection_only(socket)),
            _ => Err(error),
        };
    }
    let info = &full.mptcp_info;
    let subflows = (full.num_subflows as usize).min(MAX_SUBFLOWS);
    let filled = (full.size_tcpinfo_kernel as usize).min(TCP_INFO_BYTES);
    let subflow = |i: usize| {
        let (local, remote) = (socket_address(&ends[i][8..136])?, socket_address(&ends[i][136..])?);
        Some(SubflowInfo { id: u32_at(&ends[i], 0), local, remote, tcp: TcpInfo::parse(&flows[i][..filled]) })
    };
    let has_bytes_acked = length as usize >= std::mem::offset_of!(FullInfo, mptcp_info) + 80;
    Ok(Some(MptcpInfo {
        token: u32_at(info, 12),
        fallback: u32_at(info, 8) & 1 != 0,
        bytes_acked: has_bytes_acked.then(|| u64_at(info, 72)),
        bytes_sent: has_bytes_acked.then(|| u64_at(info, 56)),
        unacked: unacked(info),
        subflows: (0..subflows).filter_map(subflow).collect(),
    }))
}

/// Of struct mptcp_info: what was written beyond what is acknowledged (`mptcpi_write_seq`, `mptcpi_snd_una`).
fn unacked(info: &[u8]) -> u64 {
    u64_at(info, 16).wrapping_sub(u64_at(info, 24))
}

/// Does this kernel tell of every subflow of an MPTCP socket? Also of one that is not connected yet.
pub(crate) fn tells_subflows(socket: &Socket) -> bool {
    mptcp(socket).is_ok_and(|info| info.is_some_and(|info| info.bytes_acked.is_some()))
}

/// Before Linux 6.5 there is no MPTCP_FULL_INFO: the connection without its subflows.
fn connection_only(socket: &Socket) -> Option<MptcpInfo> {
    let mut info = [0; MPTCP_INFO_BYTES];
    getsockopt(socket, SOL_MPTCP, MPTCP_INFO, &mut info).ok()?;
    let fallback = u32_at(&info, 8) & 1 != 0;
    Some(MptcpInfo {
        token: u32_at(&info, 12),
        fallback,
        bytes_acked: None,
        bytes_sent: None,
        unacked: unacked(&info),
        subflows: Vec::new(),
    })
}

/// A struct sockaddr of either family; an IPv4 address in IPv6 clothing is undressed.
fn socket_address(b: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([b[2], b[3]]);
    let ip: IpAddr = match i32::from(u16::from_ne_bytes([b[0], b[1]])) {
        libc::AF_INET => <[u8; 4]>::try_from(&b[4..8]).map(Ipv4Addr::from).ok()?.into(),
        libc::AF_INET6 => <[u8; 16]>::try_from(&b[8..24]).map(Ipv6Addr::from).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// The congestion controller in use, as the kernel calls it.
pub(crate) fn control(socket: &Socket) -> io::Result<String> {
    let mut buffer = [0; 32];
    let n = getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut buffer)?;
    let name = buffer[..n.min(32)].split(|&b| b == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// What the clock of TCP timestamps shows in this connection (TCP_TIMESTAMP).
pub(crate) fn timestamp(socket: &Socket) -> io::Result<u32> {
    let mut buffer = [0; 4];
    getsockopt(socket, libc::IPPROTO_TCP, TCP_TIMESTAMP, &mut buffer)?;
    Ok(u32::from_ne_bytes(buffer))
}

/// Chooses the congestion controller.
pub(crate) fn set_control(socket: &Socket, name: &str) -> io::Result<()> {
    // SAFETY: the text is as long as is said
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        assert_eq!(std::mem::offset_of!(FullInfo, mptcp_info), 40);
        let mut b = [0; TCP_INFO_BYTES];
        b[68..72].copy_from_slice(&1500u32.to_ne_bytes());
        b[120..128].copy_from_slice(&7u64.to_ne_bytes());
        b[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        let info = TcpInfo::parse(&b);
        assert_eq!((info.rtt_us, info.bytes_acked, info.min_rtt_us), (1500, 7, None));
        assert_eq!(TcpInfo::parse(&b[..100]).bytes_acked, 0, "an older kernel fills less");
    }
}
