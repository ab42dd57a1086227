//! The sender (RFC 8762 section 4.2): a packet every so often, and what their answers say.

use std::collections::VecDeque;

use pathcast_base::Nanos;

use super::packet::{Mode, ReflectedPacket, TestPacket};
use super::reflector::{EXTRA_PADDING, UNRECOGNISED};
use super::report::{OneWay, Spread, StampReport};
use super::time::{ErrorEstimate, Format};
use crate::machine::{Action, Event, Machine, Progress, Reply};

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct SenderOptions {
    /// Packets.
    pub count: u32,
    /// From one to the next.
    pub interval: Nanos,
    /// How long the last answers are waited for.
    pub wait: Nanos,
    /// Bytes that UDP carries, at least those of the base packet. What is more is an extension for padding (RFC 8972 section
    /// 4.1), or in authenticated packets plain zeros: extensions would need a second HMAC there.
    pub payload: u16,
    /// Code point, 0 to 63.
    pub dscp: u8,
    /// The session's identifier; 0: none.
    pub ssid: u16,
    /// Protection.
    pub mode: Mode,
    /// Whether this host's clock is kept right.
    pub synchronised: bool,
    /// The largest error of this host's clock.
    pub error: Nanos,
}

impl Default for SenderOptions {
    /// Ten small packets in a second, open, answers within a second, a clock of which nothing is known.
    fn default() -> Self {
        SenderOptions {
            count: 10,
            interval: Nanos::millis(100),
            wait: Nanos::secs(1),
            payload: 0,
            dscp: 0,
            ssid: 0,
            mode: Mode::Open,
            synchronised: false,
            error: Nanos::secs(16),
        }
    }
}

/// One packet.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// As written into it.
    stamp: Nanos,
    left: Option<Nanos>,
    unsent: bool,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The reflector's number.
    number: u32,
    /// On the reflector's clock.
    there: Nanos,
    back: Nanos,
    came: Nanos,
    error: ErrorEstimate,
}

/// Sends and listens; its result is empty, and [`Sender::report`] has what it found.
#[derive(Debug)]
pub struct Sender {
    options: SenderOptions,
    sent: Vec<Sent>,
    /// When the next packet, or the end, is due.
    due: Nanos,
    latest: u32,
    duplicates: u64,
    reordered: u64,
    ttl: Option<u8>,
    dscp: Option<u8>,
    wants: VecDeque<Action>,
}

impl Sender {
    /// Nothing sent yet.
    pub fn new(options: SenderOptions) -> Sender {
        Sender {
            options,
            sent: Vec::new(),
            due: Nanos::ZERO,
            latest: 0,
            duplicates: 0,
            reordered: 0,
            ttl: None,
            dscp: None,
            wants: VecDeque::new(),
        }
    }

    fn is_complete(&self) -> bool {
        let told = |s: &Sent| s.unsent || (s.left.is_some() && s.answer.is_some());
        self.sent.len() as u32 == self.options.count && self.sent.iter().all(told)
    }

    fn send(&mut self, now: Nanos) {
        let SenderOptions { interval, wait, payload, dscp, ssid, mode, synchronised, error, count } = &self.options;
        let sequence = self.sent.len() as u32;
        let error = ErrorEstimate::new(*synchronised, Format::Ntp, *error);
        let packet = TestPacket { sequence, timestamp: Format::Ntp.write(now), error, ssid: *ssid };
        let payload = pad(packet.write(mode), (*payload).into(), mode);
        let reply = Reply { path: 0, seq: sequence.into(), size: 0, dscp: *dscp, payload };
        self.wants.push_back(Action::Reply(reply));
        self.sent.push(Sent { stamp: now, ..Sent::default() });
        let progress = Progress { phase: "stamp", done: u64::from(sequence) + 1, of: (*count).into() };
        self.wants.push_back(Action::Progress(progress));
        // a late one does not make the next ones come in a burst
        let from = if now.saturating_sub(self.due) > *interval { now } else { self.due };
        self.due = if sequence + 1 == *count { now + *wait } else { from + *interval };
    }

    fn step(&mut self, now: Nanos) {
        let all = self.sent.len() as u32 == self.options.count;
        if self.is_complete() || (all && now >= self.due) {
            return self.wants.push_back(Action::Done(Vec::new()));
        }
        if !all && now >= self.due {
            self.send(now);
        }
        self.wants.push_back(Action::WakeAt(self.due));
    }

    fn receive(&mut self, packet: &[u8], dscp: u8, came: Nanos) {
        let Some(read) = ReflectedPacket::read(&self.options.mode, packet) else { return };
        let number = read.sender.sequence;
        let Some(sent) = self.sent.get_mut(number as usize) else { return };
        // what it says of ours must be ours: anyone can send something without a key
        if read.sender.timestamp != Format::Ntp.write(sent.stamp) || read.own.ssid != self.options.ssid {
            return;
        }
        if sent.answer.is_some() {
            self.duplicates += 1;
            return;
        }
        let time = |stamp| read.own.error.format.read(stamp, came);
        let (there, back) = (time(read.received), time(read.own.timestamp));
        sent.answer = Some(Answer { number: read.own.sequence, there, back, came, error: read.own.error });
        self.reordered += u64::from(number < self.latest);
        self.latest = self.latest.max(number);
        (self.ttl, self.dscp) = (Some(read.sender_ttl), Some(dscp));
    }

    /// What was found so far.
    pub fn report(&self) -> StampReport {
        let unsent = self.sent.iter().filter(|s| s.unsent).count() as u64;
        let answered: Vec<(Nanos, Answer)> =
            self.sent.iter().filter_map(|s| s.answer.map(|a| (s.left.unwrap_or(s.stamp), a))).collect();
        let sent = self.sent.len() as u64 - unsent;
        let received = answered.len() as u64;
        let lost = sent.saturating_sub(received);
        let lost_out = self.lost_out(lost);
        let durations = |of: fn(&(Nanos, Answer)) -> i64| answered.iter().map(of).collect::<Vec<i64>>();
        let out = durations(|(left, a)| difference(a.there, *left));
        let back = durations(|(_, a)| difference(a.came, a.back));
        let round = durations(|(left, a)| difference(a.came, *left) - difference(a.back, a.there));
        StampReport {
            sent,
            unsent,
            received,
            lost,
            lost_out,
            lost_in: lost_out.map(|out| lost - out),
            duplicates: self.duplicates,
            reordered: self.reordered,
            round_trip_s: Spread::of(round),
            out_s: self.one_way(out, &answered),
            in_s: self.one_way(back, &answered),
            ttl_out: self.ttl,
            dscp_in: self.dscp,
        }
    }

    /// A reflector that counts has seen as many packets up to its last answer as that answer's number says.
    fn lost_out(&self, lost: u64) -> Option<u64> {
        let answers = self.sent.iter().zip(0u32..).filter_map(|(s, number)| s.answer.map(|a| (a.number, number)));
        let last = answers.clone().max()?;
        let counts = answers.clone().any(|(theirs, ours)| theirs != ours);
        match (counts, lost) {
            (_, 0) => Some(0),
            (true, _) => Some(u64::from(last.1.saturating_sub(last.0)).min(lost)),
            (false, _) => None,
        }
    }

    fn one_way(&self, delays: Vec<i64>, answered: &[(Nanos, Answer)]) -> Option<OneWay> {
        let spread = Spread::of(delays)?;
        // a PTP stamp may count leap seconds or not
        let trusted = |a: &Answer| a.error.synchronised && a.error.format == Format::Ntp && a.error.error().is_some();
        let synchronised = self.options.synchronised && answered.iter().all(|(_, a)| trusted(a));
        let theirs = answered.iter().filter_map(|(_, a)| a.error.error()).max().unwrap_or_default();
        let error = theirs.as_secs_f64() + self.options.error.as_secs_f64();
        Some(OneWay {
            synchronised,
            minimum: synchronised.then_some(spread.minimum),
            error: synchronised.then_some(error),
            median_above_minimum: spread.median - spread.minimum,
            p95_above_minimum: spread.p95 - spread.minimum,
        })
    }
}

/// Makes a base packet as large as is wanted.
fn pad(mut packet: Vec<u8>, payload: usize, mode: &Mode) -> Vec<u8> {
    let extra = payload.saturating_sub(packet.len());
    if let (Mode::Open, Some(value)) = (mode, extra.checked_sub(4)) {
        let [high, low] = (value as u16).to_be_bytes(); // less than a payload, which has 16 bits
        packet.extend([UNRECOGNISED, EXTRA_PADDING, high, low]);
    }
    packet.resize(packet.len().max(payload), 0);
    packet
}

/// `later` less `earlier` [ns], which need not be of one clock.
fn difference(later: Nanos, earlier: Nanos) -> i64 {
    later.0.wrapping_sub(earlier.0) as i64
}

impl Machine for Sender {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Started => self.due = now,
            Event::Timer => {}
            Event::Sent { seq, at, .. } => {
                if let Some(sent) = self.sent.get_mut(seq as usize) {
                    sent.left = Some(at);
                }
            }
            Event::Unsent { seq, .. } => {
                if let Some(sent) = self.sent.get_mut(seq as usize) {
                    sent.unsent = true;
                }
            }
            Event::Received { packet, dscp, at, .. } => self.receive(packet, dscp, at),
            Event::Stop => return self.wants.push_back(Action::Done(Vec::new())),
        }
        self.step(now);
    }

    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.wants.pop_front()
    }
}

#[cfg(test)]
mod tests;
