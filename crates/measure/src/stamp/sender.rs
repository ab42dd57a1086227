//! The sender (RFC 8762 section 4.2): a packet every so often, and what their answers say.

use std::collections::{BTreeSet, VecDeque};

use pathcast_base::Nanos;

use super::packet::{Mode, ReflectedPacket, TestPacket};
use super::reflector::{EXTRA_PADDING, UNRECOGNISED};
use super::report::{OneWay, Spread, StampReport, Warning};
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

/// How far stamps of one host may be off that come from different places, such as its device and its kernel.
const SLACK: Nanos = Nanos::millis(1);
/// The largest error of a clock that is kept right: beyond it NTP calls it unsynchronised (RFC 5905 section 7.2, MAXDISP).
const LARGEST: Nanos = Nanos::secs(16);

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
        let reply = Reply { path: 0, seq: sequence.into(), size: 0, dscp: *dscp, ecn: 0, payload };
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
        let answers = || self.sent.iter().filter_map(|s| s.answer.map(|a| Times::of(s.left.unwrap_or(s.stamp), a)));
        let sent = self.sent.len() as u64 - unsent;
        let received = answers().count() as u64;
        let lost = sent.saturating_sub(received);
        let lost_out = self.lost_out(lost);
        let told: Vec<Times> = answers().filter(Times::are_possible).collect();
        let [out_s, in_s] = [|t: &Times| t.out, |t: &Times| t.back].map(|of| self.one_way(&told, of));
        let mut warnings = Vec::new();
        let mut warn = |warning, when| warnings.extend(Some(warning).filter(|_| when));
        warn(Warning::Stamps, (told.len() as u64) < received);
        warn(Warning::Clock, !told.is_empty() && out_s.is_none());
        let claimed = !told.is_empty() && told.iter().all(|t| t.trusted);
        warn(Warning::Claim, claimed && self.options.synchronised && out_s.is_some_and(|way| !way.synchronised));
        warn(Warning::Numbers, lost_out.is_err());
        let lost_out = lost_out.unwrap_or_default();
        StampReport {
            sent,
            unsent,
            received,
            lost,
            lost_out,
            lost_in: lost_out.map(|out| lost - out),
            duplicates: self.duplicates,
            reordered: self.reordered,
            warnings,
            round_trip_s: Spread::of(told.iter().map(|t| t.round).collect()),
            out_s,
            in_s,
            ttl_out: self.ttl,
            dscp_in: self.dscp,
        }
    }

    /// A reflector that counts has seen as many packets up to its last answer as that answer's number says. None: it does not
    /// count, or nobody knows of what was lost behind that answer; an error: its numbers cannot be.
    fn lost_out(&self, lost: u64) -> Result<Option<u64>, ()> {
        let answers = || self.sent.iter().zip(0u32..).filter_map(|(s, ours)| s.answer.map(|a| (a.number, ours)));
        let Some(end) = answers().map(|(_, ours)| ours).max() else { return Ok(None) };
        let (before, behind) = self.sent.split_at(end as usize);
        let left = |part: &[Sent]| part.iter().filter(|s| !s.unsent).count() as u64;
        let (last, tail) = (left(before), left(&behind[1..]));
        if lost == 0 || answers().all(|(theirs, ours)| theirs == ours) {
            return Ok((lost == 0).then_some(0));
        }
        let theirs: BTreeSet<u32> = answers().map(|(theirs, _)| theirs).collect();
        let seen = u64::from(theirs.last().copied().unwrap_or_default());
        // it counts what came twice, too
        let twice = seen.saturating_sub(last);
        let missing = last.saturating_sub(seen);
        match theirs.len() == answers().count() && twice <= self.duplicates && missing + tail <= lost {
            true => Ok((tail == 0).then_some(missing)),
            false => Err(()),
        }
    }

    /// One direction's delays; none if they are of no clock.
    fn one_way(&self, told: &[Times], of: fn(&Times) -> i64) -> Option<OneWay> {
        let spread = Spread::of(told.iter().map(of).collect())?;
        let round = told.iter().map(|t| t.round).max()?;
        // both ends of one way within the round trips, for a clock that goes wrong by 1 in 1000 and is not set
        let (first, last) = (told.first()?.left, told.last()?.left);
        let drift = last.saturating_sub(first).0 / 1000 + SLACK.0;
        let most = told.iter().map(of).max()?.saturating_sub(told.iter().map(of).min()?);
        if most > round.saturating_add_unsigned(drift) {
            return None;
        }
        let theirs = told.iter().map(|t| t.error).max().unwrap_or_default();
        let error = Nanos(theirs.0.saturating_add(self.options.error.0));
        let bound = i64::try_from(error.0).unwrap_or(i64::MAX).saturating_add_unsigned(SLACK.0);
        let is_within =
            |t: &Times| [t.out, t.back].iter().all(|&way| (-bound..=bound.saturating_add(t.round)).contains(&way));
        let synchronised =
            self.options.synchronised && theirs <= LARGEST && told.iter().all(|t| t.trusted && is_within(t));
        Some(OneWay {
            synchronised,
            minimum: synchronised.then_some(spread.minimum),
            error: synchronised.then_some(error.as_secs_f64()),
            median_above_minimum: spread.median - spread.minimum,
            p95_above_minimum: spread.p95 - spread.minimum,
        })
    }
}

/// One answered packet [ns].
struct Times {
    left: Nanos,
    out: i64,
    back: i64,
    /// There and back, and how much of it the reflector took.
    whole: i64,
    there: i64,
    round: i64,
    /// Whether the reflector says that its clock is kept right, and to how much.
    trusted: bool,
    error: Nanos,
}

impl Times {
    fn of(left: Nanos, a: Answer) -> Times {
        let (whole, there) = (difference(a.came, left), difference(a.back, a.there));
        Times {
            left,
            out: difference(a.there, left),
            back: difference(a.came, a.back),
            whole,
            there,
            round: whole.saturating_sub(there).max(0),
            // a PTP stamp may count leap seconds or not
            trusted: a.error.synchronised && a.error.format == Format::Ntp && a.error.error().is_some(),
            error: a.error.error().unwrap_or_default(),
        }
    }

    /// Whether the reflector had the packet for some time, and not for longer than it was away.
    fn are_possible(&self) -> bool {
        let slack = SLACK.0 as i64;
        self.there >= -slack && self.there <= self.whole.saturating_add(slack)
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
            Event::Timer | Event::Missed { .. } => {}
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
