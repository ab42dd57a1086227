//! The sending half of a subflow: what is in flight, and what may be sent now.

use std::collections::VecDeque;

use pathcast_congestion::{Connection, Event, Flow, INFINITE, Instance, Params, State};

use super::board::{Board, END, Segment};
use super::buffers::{FIRST_SEND, send_buffer, super_packet, taken};
use super::config::Config;
use super::loss::Rack;
use super::offload::Offload;
use super::pace::Pace;
use super::recovery::{Reduction, Undo};
use super::rtt::Rtt;
use super::timer::Timer;
use super::validate::Use;
use crate::again::Progress;

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub undos: u64,
    /// Segments that a link dropped.
    pub drops: u64,
    /// Payload bytes acknowledged, and sent again.
    pub acked_bytes: u64,
    pub again_bytes: u64,
}

/// The sending half of a subflow.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub flow: Flow,
    pub control: Instance,
    pub asks_send: bool,
    /// The flow is in its connection's group.
    pub grouped: bool,
    /// Which sizes of [`Config`] hold.
    pub kind: usize,
    /// First segment not acknowledged, next to be sent.
    pub una: u64,
    pub nxt: u64,
    pub una_bytes: u64,
    pub nxt_bytes: u64,
    pub(super) board: Board,
    /// Of the segments between them: selectively acknowledged (without SACK: duplicate ACKs), thought to be lost, sent
    /// again; and lost but not yet sent again.
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) retrans: u32,
    pub(super) to_resend: u32,
    /// Since the start: acknowledged in any order; thought to be lost, again if again.
    pub(super) all_delivered: u64,
    pub(super) all_lost: u64,
    /// Until so many are delivered, what is in flight left when the application had nothing more; 0: none of it did.
    pub(super) starved_until: u64,
    /// Nothing below is to be resent.
    pub(super) resend_from: u64,
    /// Behind the highest segment sent again in this recovery; the rescue has been used.
    pub(super) high_resent: u64,
    pub(super) rescued: bool,
    /// One segment may leave whatever the window says.
    pub(super) forced: bool,
    /// Behind the highest segment selectively acknowledged.
    pub(super) high_sacked: u64,
    /// Segments below, sent once, have been judged by the blocks above them.
    pub(super) judged: u64,
    pub(super) rack: Rack,
    pub state: State,
    /// Recovery ends when this segment is the next to be acknowledged.
    pub(super) high_seq: u64,
    /// `una` at the last timeout.
    pub(super) loss_una: u64,
    /// What was sent once and arrives belies the last timeout; new segments go before lost ones until the next ACK.
    pub(super) frto: bool,
    pub tries_new: bool,
    /// A segment sent again was found lost since the last ACK.
    pub(super) lost_again: bool,
    /// Duplicate ACKs below say nothing of a new loss (RFC 6582).
    pub(super) recover: Option<u64>,
    /// Duplicate ACKs in a row, where they are counted.
    pub(super) duplicates: u32,
    pub(super) reduction: Reduction,
    /// The next new segment says that the window was reduced.
    pub answers_mark: bool,
    pub(super) undo: Undo,
    pub rtt: Rtt,
    /// Given to this subflow ahead of its window: places in the stream.
    pub queue: VecDeque<u64>,
    /// Its send buffer, which grows with the window and never shrinks [byte].
    buffer: u64,
    /// Pacing rate, averaged over what was queued at it [byte/s]; 0: nothing was.
    pub mean_rate: u64,
    /// An ACK came after the last look at what is queued.
    pub answered: bool,
    pub(super) timer: Timer,
    pub(super) pace: Pace,
    pub(super) usage: Use,
    pub(super) offload: Offload,
    /// When a segment was sent last, and when an ACK came last [ns].
    pub(super) last_sent: u64,
    pub heard: u64,
    pub progress: Progress,
    /// It is given nothing while another may be.
    pub held: bool,
    /// pathcast has asked for a send buffer.
    pub roomy: bool,
    pub stats: Stats,
    /// What those before it in its place have done.
    past: Stats,
}

impl Sender {
    /// A sender that has not been told of its connection yet.
    pub(crate) fn new(params: &Params) -> Self {
        Sender {
            flow: Flow::new(1, 1),
            asks_send: params.info().hooks.send(),
            control: Instance::new(params),
            grouped: false,
            kind: 0,
            una: 0,
            nxt: 0,
            una_bytes: 0,
            nxt_bytes: 0,
            board: Board::new(),
            sacked: 0,
            lost: 0,
            retrans: 0,
            to_resend: 0,
            all_delivered: 0,
            all_lost: 0,
            starved_until: 0,
            resend_from: 0,
            high_resent: 0,
            rescued: false,
            forced: false,
            high_sacked: 0,
            judged: 0,
            rack: Rack::default(),
            state: State::Open,
            high_seq: 0,
            loss_una: 0,
            frto: false,
            tries_new: false,
            lost_again: false,
            recover: None,
            duplicates: 0,
            reduction: Reduction::default(),
            answers_mark: false,
            undo: Undo::default(),
            rtt: Rtt::default(),
            queue: VecDeque::new(),
            buffer: 0,
            mean_rate: 0,
            answered: false,
            timer: Timer::default(),
            pace: Pace::default(),
            usage: Use::default(),
            offload: Offload::default(),
            last_sent: 0,
            heard: 0,
            progress: Progress::default(),
            held: false,
            roomy: false,
            stats: Stats::default(),
            past: Stats::default(),
        }
    }

    /// Begins anew for another connection, and keeps its room.
    pub(crate) fn reset(&mut self, params: &Params) {
        let mut board = std::mem::replace(&mut self.board, Board::new());
        board.clear();
        let mut rack = std::mem::take(&mut self.rack);
        rack.clear();
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        *self = Sender { board, rack, queue, ..Sender::new(params) };
    }

    /// Begins anew in the place of one that has ended, whose deeds count on.
    pub(crate) fn succeed(&mut self, params: &Params) {
        let past = self.total();
        self.reset(params);
        self.past = past;
    }

    /// What it has done, and those before it in its place.
    pub(crate) fn total(&self) -> Stats {
        let (own, past) = (&self.stats, &self.past);
        Stats {
            sent: own.sent + past.sent,
            retransmits: own.retransmits + past.retransmits,
            timeouts: own.timeouts + past.timeouts,
            recoveries: own.recoveries + past.recoveries,
            undos: own.undos + past.undos,
            drops: own.drops + past.drops,
            acked_bytes: own.acked_bytes + past.acked_bytes,
            again_bytes: own.again_bytes + past.again_bytes,
        }
    }

    /// The handshake is over: the controller gets its first window. `rtt_us` is the handshake's; 0: it has none.
    pub(crate) fn establish(
        &mut self,
        now: u64,
        kind: usize,
        rtt_us: u32,
        config: &Config,
        group: Option<&mut Connection>,
    ) {
        let mss = config.mss[kind];
        self.kind = kind;
        if rtt_us > 0 {
            self.rtt.sample(rtt_us, 0, 0, config);
        }
        self.flow = Flow::new(mss, config.initial_window);
        if let Some(bytes) = config.initial_ssthresh {
            self.flow.ssthresh = bytes.div_ceil(u64::from(mss)).clamp(2, u64::from(INFINITE)) as u32;
        }
        self.flow.set_multipath(kind & 1 == 1);
        self.refresh(now, config);
        if config.autotuning {
            self.buffer = send_buffer(self.flow.cwnd, mss, config);
        }
        self.grouped = false;
        self.usage = Use::new(now);
        match group {
            Some(group) => {
                self.grouped = group.join(&mut self.flow).is_some();
                self.control.init(&mut self.flow);
                if self.grouped {
                    group.deliver(&self.flow);
                    group.meet(&mut self.flow, false);
                }
            }
            None => self.control.init(&mut self.flow),
        }
    }

    /// Its send buffer now [byte].
    #[inline]
    pub(crate) fn send_buffer(&mut self, config: &Config) -> u64 {
        if !config.autotuning {
            // of payload, as much as twice the window in pages; where `scheduler` asks for it
            let room = (2 * u64::from(self.flow.cwnd.max(10)) * (4096 + 256)).min(config.send_buffer);
            self.buffer = self.buffer.max(room);
            return self.buffer;
        }
        if self.roomy {
            return 2 * config.send_buffer;
        }
        self.buffer.max(FIRST_SEND).min(config.send_buffer)
    }

    /// An ACK was answered while the program waits for room: the send buffer follows the window, unless that is full
    /// (`tcp_should_expand_sndbuf`).
    #[inline]
    pub(crate) fn expand_buffer(&mut self, config: &Config) {
        if self.in_flight() < self.flow.cwnd {
            self.buffer = self.buffer.max(send_buffer(self.flow.cwnd, self.flow.mss, config));
        }
    }

    /// Memory that a sent segment takes in it on average [byte].
    #[inline]
    pub(crate) fn each(&self, mss: u64) -> u64 {
        let together = super_packet(self.pacing_rate(), self.rtt.min_us, mss, 2);
        taken(together, 1, 0, mss) / together
    }

    /// Whether the scheduler may choose it.
    #[inline]
    pub(crate) fn is_active(&mut self) -> bool {
        self.progress.is_active(self.heard)
    }

    /// Memory of all that is in it [byte].
    #[inline]
    pub(crate) fn queued(&self, mss: u64, config: &Config) -> u64 {
        let (sent, waiting) = (u64::from(self.out()), self.queue.len() as u64);
        if config.autotuning {
            taken(sent, u64::from(self.offload.packets), waiting, mss)
        } else {
            (sent + waiting) * mss
        }
    }

    /// Segments between `una` and `nxt`.
    #[inline]
    pub(crate) fn out(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// Segments thought to be in the network.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.out() + self.retrans - self.sacked - self.lost
    }

    /// Brings the controller's view up to date.
    #[inline]
    pub(super) fn refresh(&mut self, now: u64, config: &Config) {
        let in_flight = self.in_flight();
        let limited = self.is_limited(config);
        let flow = &mut self.flow;
        flow.now_us = now / 1000;
        flow.una = self.una_bytes;
        flow.nxt = self.nxt_bytes;
        flow.in_flight = in_flight;
        flow.srtt_us = self.rtt.srtt_us();
        flow.rttvar_us = self.rtt.var_us(config);
        flow.set_state(self.state);
        flow.set_limited(limited);
        flow.set_starved(self.starved_until > 0);
        (flow.delivered, flow.lost) = (self.all_delivered as u32, self.all_lost as u32);
    }

    /// Whether a lost segment is the next to be sent.
    #[inline]
    pub(crate) fn must_resend(&self) -> bool {
        self.to_resend > 0 && !self.tries_new
    }

    /// The window, or what a controller allows of it at this opportunity.
    #[inline]
    pub(super) fn window(&self) -> u32 {
        self.flow.cwnd.min(self.offload.allowed)
    }

    /// Segments that the window lets go now.
    #[inline]
    pub(crate) fn room(&self, config: &Config) -> u32 {
        let mut in_flight = self.in_flight();
        if !config.limited_transmit && self.state == State::Disorder {
            in_flight += self.sacked; // duplicate ACKs let nothing go
        }
        self.window().saturating_sub(in_flight).max(u32::from(self.forced))
    }

    /// Whether the window lets something go, whatever a controller allows at this opportunity.
    #[inline]
    pub(crate) fn has_window(&self, config: &Config) -> bool {
        self.room(config) > 0 || (self.offload.allowed != u32::MAX && self.in_flight() < self.flow.cwnd)
    }

    /// Whether a short last segment fits into what the window leaves of one.
    pub(crate) fn fits_in_part(&self, bytes: u64, config: &Config) -> bool {
        self.counts_bytes(config)
            && self.to_resend == 0
            && self.in_flight() == self.flow.cwnd
            && bytes <= u64::from(self.flow.cwnd_cnt)
    }

    /// The controller is asked before a transmit opportunity.
    pub(crate) fn ask_send(&mut self, now: u64, config: &Config) {
        if self.asks_send {
            self.refresh(now, config);
            self.control.send(&mut self.flow);
            if self.flow.window > 0 && matches!(self.state, State::Cwr | State::Recovery) {
                self.flow.cwnd = self.flow.window; // PRR makes its own anew at each ACK
            }
            self.limit_burst();
        }
    }

    /// A segment has left; where the host hands each over by itself, that is an opportunity of its own.
    #[inline]
    pub(crate) fn ask_again(&mut self, now: u64, config: &Config) {
        if self.sends_single() {
            self.ask_send(now, config);
        }
    }

    /// A new segment leaves now; its number.
    #[inline]
    pub(crate) fn send_new(&mut self, now: u64, dsn: u64, bytes: u16, config: &Config) -> u64 {
        if self.out() == 0 {
            self.restart_after_idle(now, config);
        }
        self.start(now, config);
        let seq = self.nxt;
        let ends = self.ends_packet();
        self.offload.packets += u32::from(ends);
        self.board.push(self.una, seq, Segment { sent: now, dsn, bytes, flags: if ends { END } else { 0 } });
        self.nxt += 1;
        self.nxt_bytes += u64::from(bytes);
        self.sent(now, bytes, config);
        seq
    }

    pub(super) fn sent(&mut self, now: u64, bytes: u16, config: &Config) {
        self.stats.sent += 1;
        self.forced = false;
        self.last_sent = now;
        if self.reduction.active {
            self.reduction.sent += 1;
        }
        if let Some(bytes) = self.burst_sent(u32::from(bytes)) {
            self.pace_after(now, bytes, config);
        }
        if self.timer.is_idle() {
            self.arm_rto(now, config);
        }
    }

    /// The segment's place in the connection's stream and its bytes.
    #[inline]
    pub(crate) fn content(&self, seq: u64) -> (u64, u16) {
        let segment = self.board.get(seq);
        (segment.dsn, segment.bytes)
    }

    #[inline]
    pub(super) fn is_sacked(&self, seq: u64) -> bool {
        self.board.is_sacked(seq)
    }

    /// A packet leaves while nothing is in flight, though lost segments may be out.
    #[inline]
    pub(super) fn start(&mut self, now: u64, config: &Config) {
        if self.in_flight() == 0 {
            self.refresh(now, config);
            self.control.event(&mut self.flow, Event::TxStart);
        }
    }

    /// The subflow ends.
    pub(crate) fn release(&mut self, group: Option<&mut Connection>) {
        if let (true, Some(group)) = (self.grouped, group) {
            group.leave(&self.flow);
        }
        self.control.release(&mut self.flow);
    }
}
