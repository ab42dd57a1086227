//! `[tcp]`: how TCP behaves in the simulator. What a preset means is decided there; here is what can be said.

use pathcast_base::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::whole::whole;

/// A preset, and single values that override it; none: as the preset has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Whose TCP; default linux.
    pub preset: Preset,
    /// Window at the start of a connection, in packets.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole::<1, 1000, _>")]
    pub initial_window: Option<u32>,
    /// Largest payload of a segment, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<Bytes>,
    /// Slow start threshold of a new subflow, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Bytes>,
    /// Selective acknowledgements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Packets per acknowledgement: 1 or 2.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole::<1, 2, _>")]
    pub delayed_ack: Option<u32>,
    /// Longest time that an acknowledgement is held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack_timeout: Option<Nanos>,
    /// Smallest retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Nanos>,
    /// Retransmission timeout before the first RTT sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Nanos>,
    /// Whether buffers begin small and grow with the traffic, sizes being memory as in Linux; else they have their largest size,
    /// of payload, from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autotuning: Option<bool>,
    /// Largest receive buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Bytes>,
    /// Largest send buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Bytes>,
    /// Whether packets are spread over the RTT even where the controller does not ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// New data on the first two duplicate acknowledgements (RFC 3042).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// How the window moves during recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// RACK-TLP in place of counting duplicate acknowledgements (RFC 8985); with SACK only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<bool>,
    /// Whether a reduction that turns out to be spurious is undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<bool>,
    /// Whether the first packets of a connection are acknowledged at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_ack: Option<bool>,
    /// Whether a window that the application does not use does not grow, and shrinks when idle (RFC 7661, RFC 2861).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_validation: Option<bool>,
    /// Whether a window that was not used for a retransmission timeout shrinks; only with `window_validation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_restart: Option<bool>,
    /// Whether timestamps count in microseconds at both ends, and so tell one-way delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usec_timestamps: Option<bool>,
    /// Packets counted per acknowledgement in window growth, 1 to 65535: L of RFC 3465.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole::<1, 65535, _>")]
    pub abc_limit: Option<u32>,
    /// Explicit congestion notification: queues that can mark packets mark those of TCP and do not drop them (RFC 3168).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Whether the receiver closes what it has read to its end, or a connection is over with its last acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fin: Option<bool>,
    /// MPTCP: which subflow sends next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Scheduler>,
    /// MPTCP: when the later subflows join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// MPTCP: whether data of a subflow that timed out is sent again over the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinjection: Option<bool>,
    /// MPTCP: whether what a subflow is given follows pathcast's own rule, never slower than the best path (preset `linux`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steering: Option<bool>,
}

/// Whose TCP the values are taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// The Linux kernel's.
    #[default]
    Linux,
    /// That of ns-3.
    Ns3,
    /// That of ns-2, as papers of its time used it.
    Ns2,
    /// The RFCs' own values.
    Rfc,
}

/// How the window moves during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Proportional rate reduction (RFC 6937).
    Prr,
    /// Window inflation by duplicate acknowledgements (RFC 5681, RFC 6582).
    Classic,
}

/// Which subflow of an MPTCP connection sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// Of those with room in their windows the one with the smallest RTT.
    MinRtt,
    /// Those with room in their windows in turn.
    RoundRobin,
    /// As the kernel does: data is queued at the subflow whose queue drains first, ahead of its window.
    Linux,
}

/// When the later subflows of an MPTCP connection join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// After the first subflow's handshake.
    Handshake,
    /// All at once with the first.
    Together,
}
