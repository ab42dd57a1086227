//! The one record of a transfer, which every world fills, and the address pairs that it goes over.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A path: an address pair, one subflow. Where several are the same pair, ports tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAddr {
    /// What it is called.
    pub name: String,
    /// Address at this end.
    pub local: IpAddr,
    /// Address at the far end.
    pub remote: IpAddr,
    /// The interface that its packets leave by, where known.
    #[serde(default)]
    pub interface: Option<String>,
    /// The port at this end, where it is to be a certain one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_port: Option<u16>,
}

impl PathAddr {
    /// A path between two addresses.
    pub fn new(name: impl Into<String>, local: IpAddr, remote: IpAddr) -> PathAddr {
        PathAddr { name: name.into(), local, remote, interface: None, local_port: None }
    }
}

/// Transport of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Plain TCP.
    Tcp,
    /// Multipath TCP (RFC 8684).
    Mptcp,
}

/// Who chose the subflows of an MPTCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathManagerKind {
    /// This program: exactly the paths that were asked for.
    Userspace,
    /// The kernel, from its configured endpoints (`ip mptcp endpoint`).
    Kernel,
}

/// One TCP flow of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubflowReport {
    /// The name of the path that it took, if one has its addresses.
    pub path: Option<String>,
    /// Address at this end.
    pub local: IpAddr,
    /// Port at this end; 0 for a subflow that never was.
    pub local_port: u16,
    /// Address at the far end.
    pub remote: IpAddr,
    /// Port at the far end.
    pub remote_port: u16,
    /// Payload sent, repetitions included [byte].
    pub bytes_sent: u64,
    /// Payload acknowledged on this flow [byte].
    pub bytes_acked: u64,
    /// Payload sent again on this flow [byte].
    pub bytes_retransmitted: u64,
    /// Segments sent again [segment].
    pub retransmits: u32,
    /// Retransmission timeouts; absent where the world does not tell.
    pub timeouts: Option<u32>,
    /// Losses that were repaired without a timeout; absent where the world does not tell.
    pub recoveries: Option<u32>,
    /// Smoothed round-trip time [s]; absent until measured.
    pub rtt_s: Option<f64>,
    /// Smallest round-trip time [s]; absent until measured.
    pub min_rtt_s: Option<f64>,
    /// Congestion window [segment].
    pub cwnd_packets: u32,
    /// Maximum segment size [byte].
    pub mss_bytes: u32,
    /// When it was first seen established, after connect() [s]; absent if it never was.
    pub joined_s: Option<f64>,
    /// Was it there at the end, and did it acknowledge what it was given?
    pub alive: bool,
    /// Why it never was, or why it ended early.
    pub note: Option<String>,
}

/// How far a transfer had come at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferSample {
    /// Since connect() [s].
    pub at_s: f64,
    /// Application bytes that had arrived in order.
    pub bytes: u64,
    /// Its subflows, in the order of its paths; fewer as long as it has not made all of them.
    pub subflows: Vec<SubflowSample>,
}

/// A subflow at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SubflowSample {
    /// Payload acknowledged [byte].
    pub bytes_acked: u64,
    /// Window [packet].
    pub cwnd_packets: u32,
    /// Smoothed round-trip time [s]; absent until measured.
    pub srtt_s: Option<f64>,
}

/// A transfer that has finished, or was stopped at its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferReport {
    /// Application bytes that the receiver has confirmed; of a stopped transfer, that were acknowledged.
    pub bytes: u64,
    /// It was broken off at the time that was given for it; no receipt came.
    pub stopped: bool,
    /// From the call to connect() [s].
    pub waited_s: f64,
    /// From connect() to the arrival of the receiver's receipt, or to the stop, on this host's clock [s].
    pub elapsed_s: f64,
    /// `bytes` over `elapsed_s` [bit/s].
    pub throughput_bps: f64,
    /// From connect() to the established connection [s].
    pub connect_s: f64,
    /// From the first byte to the last at the receiver, on its clock [s]; absent without its receipt.
    pub receiver_s: Option<f64>,
    /// The congestion controller, as the kernel calls it.
    pub control: String,
    /// What was asked for.
    pub protocol: Protocol,
    /// MPTCP was asked for, but the connection was plain TCP.
    pub fallback: bool,
    /// Why, as far as it can be told from here.
    pub fallback_reason: Option<String>,
    /// Who chose the subflows; absent for TCP.
    pub path_manager: Option<PathManagerKind>,
    /// What the reader of the numbers should know.
    pub notes: Vec<String>,
    /// All flows that were, or should have been.
    pub subflows: Vec<SubflowReport>,
    /// Where they were asked for.
    pub samples: Vec<TransferSample>,
}
