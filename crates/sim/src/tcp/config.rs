//! What the presets mean, and the values of `[tcp]` over them.
//!
//! `linux`: the kernel's defaults (6.18). `ns3`: the documented defaults of ns-3.37, with its usual segment of 1448 B in
//! place of 536 B, which nobody keeps. `ns2`: Agent/TCP/Newreno as papers of its time set it: 1000 B, no delayed ACK, no
//! SACK. `rfc`: RFC 5681, 6298, 6675, 6928.

use pathcast_base::Nanos;
use pathcast_scenario::{Join, Preset, Recovery, Scheduler, Tcp};

/// IPv4 and TCP headers with the timestamps option [byte].
const HEADER: u32 = 20 + 20 + 12;
/// The data sequence signal of MPTCP with 8-byte numbers, padded (RFC 8684, section 3.3) [byte].
const DSS: u32 = 24;
/// The same where it only acknowledges [byte].
const DSS_ACK: u32 = 12;
/// A SYN with its options [byte].
const SYN: u32 = 60;

/// How a TCP behaves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Payload of a full segment [byte], by kind: 1 for a subflow of MPTCP, plus 2 for IPv6.
    pub mss: [u32; 4],
    /// IP bytes around it; those of an ACK without SACK blocks, and most blocks that fit beside its other options.
    pub header: [u32; 4],
    pub ack: [u32; 4],
    pub blocks: [u8; 4],
    pub syn_bytes: u32,
    pub initial_window: u32,
    pub initial_ssthresh: Option<u64>,
    pub sack: bool,
    /// What the option takes beside its blocks; ns-3 pads all options together [byte].
    pub sack_header: u32,
    /// A block of it tells of a duplicate (RFC 2883).
    pub dsack: bool,
    /// Segments per ACK.
    pub delayed_ack: u32,
    pub delayed_ack_timeout: u64,
    /// ACKs that are sent at once at the start of a connection.
    pub quick_acks: u32,
    /// So many again after a segment out of order (Linux), or none (ns-3).
    pub quick_again: bool,
    pub min_rto: u64,
    pub initial_rto: u64,
    /// Repetitions of a SYN before its wait is doubled (Linux: tcp_syn_linear_timeouts), beside those after that.
    pub steady_syns: u32,
    pub max_rto: u64,
    /// The least RTO bounds the variation (Linux), not the sum (RFC 6298).
    pub rto_linux: bool,
    /// Buffers begin small and grow (Linux); else they have these sizes, of payload, from the start.
    pub autotuning: bool,
    pub receive_buffer: u64,
    pub send_buffer: u64,
    pub pacing: bool,
    /// Hosts hand over many segments at once (Linux).
    pub offload: bool,
    pub limited_transmit: bool,
    /// Only the first partial ACK of a recovery restarts the timer (RFC 6582, section 4: impatient).
    pub impatient: bool,
    /// Proportional rate reduction; else the window is ssthresh at once (RFC 5681, RFC 6675).
    pub prr: bool,
    /// Without SACK a partial ACK lets one segment go again whatever the window says (RFC 6582).
    pub partial_resend: bool,
    /// What ns-3 does otherwise: `ns3.rs`.
    pub ns3: bool,
    /// One segment more at the end of a recovery (RFC 6675, NextSeg rule 4).
    pub rescue: bool,
    pub rack: bool,
    pub undo: bool,
    pub window_validation: bool,
    /// An unused window shrinks (Linux: tcp_slow_start_after_idle).
    pub idle_restart: bool,
    /// Timestamps tell one-way delays to the microsecond.
    pub usec_timestamps: bool,
    /// Packets counted per ACK in growth.
    pub abc_limit: u32,
    /// A reduction starts from what is in flight (RFC 5681), not from the window (Linux).
    pub reduce_flight: bool,
    /// Segments may be marked in place of being dropped (RFC 3168); both ends agree.
    pub ecn: bool,
    /// Connections are closed.
    pub fin: bool,
    pub scheduler: Scheduler,
    pub join: Join,
    pub reinjection: bool,
    /// Not at a subflow's timeout, but by a timer of the connection (Linux).
    pub data_timer: bool,
    /// What a subflow is given follows pathcast's rule; none: where pathcast itself sends.
    pub steering: Option<bool>,
}

/// Times that the first packet of a handshake is sent again after doubled waits (Linux: tcp_syn_retries).
pub(crate) const SYN_RETRIES: u32 = 6;
/// Consecutive timeouts after which a connection is given up (Linux: tcp_retries2).
pub(crate) const MAX_RETRIES: u32 = 15;

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

impl Config {
    fn preset(preset: Preset) -> Config {
        let linux = Config {
            mss: [1448, 1448 - DSS, 1428, 1428 - DSS],
            header: [HEADER, HEADER + DSS, HEADER + 20, HEADER + 20 + DSS],
            ack: [HEADER, HEADER + DSS_ACK, HEADER + 20, HEADER + 20 + DSS_ACK],
            blocks: [3, 1, 3, 1],
            syn_bytes: SYN,
            initial_window: 10,
            initial_ssthresh: None,
            sack: true,
            sack_header: 4,
            dsack: true,
            delayed_ack: 2,
            delayed_ack_timeout: 40 * MS,
            quick_acks: 16,
            quick_again: true,
            min_rto: 200 * MS,
            initial_rto: 1000 * MS,
            steady_syns: 4,
            max_rto: 120_000 * MS,
            rto_linux: true,
            autotuning: true,
            receive_buffer: 32 * MIB,
            send_buffer: 4 * MIB,
            pacing: false,
            offload: true,
            limited_transmit: true,
            impatient: false,
            prr: true,
            partial_resend: false,
            ns3: false,
            rescue: true,
            rack: true,
            undo: true,
            window_validation: true,
            idle_restart: true,
            usec_timestamps: false,
            abc_limit: 65_535,
            reduce_flight: false,
            ecn: false,
            fin: true,
            scheduler: Scheduler::Linux,
            join: Join::Handshake,
            reinjection: true,
            data_timer: false,
            steering: None,
        };
        let rfc = Config {
            delayed_ack_timeout: 200 * MS,
            quick_acks: 0,
            min_rto: 1000 * MS,
            steady_syns: 0,
            rto_linux: false,
            autotuning: false,
            offload: false,
            receive_buffer: 64 * MIB,
            send_buffer: 64 * MIB,
            impatient: true,
            partial_resend: true,
            prr: false,
            rack: false,
            undo: false,
            window_validation: false,
            fin: false,
            abc_limit: 1,
            scheduler: Scheduler::MinRtt,
            reduce_flight: true,
            ..linux.clone()
        };
        match preset {
            Preset::Linux => linux,
            Preset::Rfc => rfc,
            Preset::Ns3 => Config {
                ack: rfc.header,
                blocks: [3; 4],
                syn_bytes: 56,
                sack_header: 0,
                dsack: false,
                quick_acks: 1,
                quick_again: false,
                initial_rto: 3000 * MS,
                max_rto: 60_000 * MS,
                prr: true,
                ns3: true,
                rescue: false,
                ..rfc
            },
            Preset::Ns2 => Config {
                mss: [1000; 4],
                header: [40, 40 + DSS, 60, 60 + DSS],
                ack: [40, 40 + DSS_ACK, 60, 60 + DSS_ACK],
                syn_bytes: 40,
                initial_window: 2,
                sack: false,
                delayed_ack: 1,
                min_rto: 200 * MS,
                initial_rto: 3000 * MS,
                limited_transmit: false,
                ..rfc
            },
        }
    }

    /// Payload that a connection's send buffer holds which pathcast has asked for [byte].
    pub(crate) fn steered_room(&self) -> u64 {
        // an eighth is the memory of the packets around it
        2 * self.send_buffer / 8 * 7
    }

    /// Segments that buffers of a fixed size leave unacknowledged.
    pub(crate) fn fixed_window(&self, mss: u64) -> u64 {
        (self.receive_buffer.min(self.send_buffer) / mss).max(1)
    }

    /// The preset of `tcp` with its single values.
    pub(crate) fn new(tcp: &Tcp) -> Config {
        let mut c = Config::preset(tcp.preset);
        fn put<T: Copy, U>(to: &mut U, value: Option<T>, from: impl FnOnce(T) -> U) {
            if let Some(value) = value {
                *to = from(value);
            }
        }
        let ns = |time: Nanos| time.0;
        put(&mut c.mss, tcp.mss, |mss| [mss.0 as u32; 4]);
        put(&mut c.initial_window, tcp.initial_window, |n| n);
        put(&mut c.initial_ssthresh, tcp.initial_ssthresh, |bytes| Some(bytes.0));
        put(&mut c.sack, tcp.sack, |on| on);
        put(&mut c.delayed_ack, tcp.delayed_ack, |n| n);
        put(&mut c.delayed_ack_timeout, tcp.delayed_ack_timeout, ns);
        put(&mut c.quick_acks, tcp.quick_ack, |on| if on { 16 } else { 0 });
        put(&mut c.min_rto, tcp.min_rto, ns);
        put(&mut c.initial_rto, tcp.initial_rto, ns);
        put(&mut c.autotuning, tcp.autotuning, |on| on);
        put(&mut c.receive_buffer, tcp.receive_buffer, |bytes| bytes.0);
        put(&mut c.send_buffer, tcp.send_buffer, |bytes| bytes.0);
        put(&mut c.pacing, tcp.pacing, |on| on);
        put(&mut c.limited_transmit, tcp.limited_transmit, |on| on);
        put(&mut c.prr, tcp.recovery, |recovery| recovery == Recovery::Prr);
        put(&mut c.rack, tcp.rack, |on| on);
        put(&mut c.undo, tcp.undo, |on| on);
        put(&mut c.window_validation, tcp.window_validation, |on| on);
        put(&mut c.idle_restart, tcp.idle_restart, |on| on);
        put(&mut c.usec_timestamps, tcp.usec_timestamps, |on| on);
        put(&mut c.abc_limit, tcp.abc_limit, |n| n);
        put(&mut c.fin, tcp.fin, |on| on);
        put(&mut c.ecn, tcp.ecn, |on| on);
        put(&mut c.scheduler, tcp.scheduler, |scheduler| scheduler);
        put(&mut c.join, tcp.join, |join| join);
        put(&mut c.reinjection, tcp.reinjection, |on| on);
        c.rack &= c.sack;
        c.dsack &= c.sack;
        c.data_timer = tcp.preset == Preset::Linux && c.scheduler == Scheduler::Linux && c.reinjection;
        c.steering = if c.autotuning && c.scheduler == Scheduler::Linux { tcp.steering } else { Some(false) };
        c
    }
}

#[cfg(test)]
mod tests {
    use pathcast_base::Bytes;
    use pathcast_scenario::Scenario;

    use super::*;

    #[test]
    fn a_value_goes_over_its_preset() {
        let tcp =
            Tcp { preset: Preset::Ns3, mss: Some(Bytes(1400)), sack: Some(false), rack: Some(true), ..Tcp::default() };
        let config = Config::new(&tcp);
        assert_eq!(config.mss, [1400; 4]);
        assert!(config.prr && !config.sack && !config.rack, "RACK needs SACK");
        assert_eq!(config.min_rto, 1000 * MS);
    }

    #[test]
    fn a_full_packet_is_1500_bytes() {
        for preset in [Preset::Linux, Preset::Ns3, Preset::Rfc] {
            let config = Config::preset(preset);
            assert_eq!([0, 1, 2, 3].map(|kind| config.mss[kind] + config.header[kind]), [1500; 4]);
        }
    }

    /// An IP packet has 65,535 bytes at most, and so has its size here.
    #[test]
    fn the_largest_segment_fits_into_a_packet() {
        let text = "[[link]]\nname = \"p\"\na = \"client\"\nb = \"server\"\n[[path]]\nname = \"p\"\nlinks = [\"p\"]\n";
        for preset in ["linux", "ns3", "ns2", "rfc"] {
            let given = |mss| Scenario::parse(&format!("{text}[tcp]\npreset = \"{preset}\"\nmss = \"{mss}B\"\n"), &[]);
            let config = Config::new(&(64..=70_000).rev().find_map(|mss| given(mss).ok()).unwrap().tcp);
            let packets = [0, 1, 2, 3].map(|kind| config.mss[kind] + config.header[kind]);
            assert!(packets.iter().all(|&bytes| bytes <= 65_535), "{preset}: {packets:?}");
            assert!(packets[3] > 65_400, "{preset}: {packets:?}");
        }
    }

    /// Of MPTCP: timestamps 12, the data ACK 12, one block 12. Seen in the kernel: 64 and 76 bytes, never more.
    #[test]
    fn an_acks_options_fit_into_40_bytes() {
        let config = Config::preset(Preset::Linux);
        let fills = |kind: usize| config.ack[kind] + config.sack_header + 8 * u32::from(config.blocks[kind]);
        assert_eq!([0, 1, 2, 3].map(fills), [80, 76, 100, 96]);
        assert_eq!(config.ack, [52, 64, 72, 84]);
    }
}
