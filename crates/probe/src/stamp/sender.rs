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
mod tests {
    use super::*;
    use crate::machine::Batch;
    use crate::stamp::{Reflector, ReflectorClock, Request, StampKey};

    /// What the way does to a packet: lost before or after the reflector, or answered twice.
    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        Fine,
        LostOut,
        LostIn,
        Twice,
    }

    struct Way {
        fates: Vec<Fate>,
        /// What the reflector's clock shows less the sender's [ns].
        offset: i64,
        reflector: Reflector,
        clock: ReflectorClock,
    }

    const OUT: Nanos = Nanos::millis(3);
    const BACK: Nanos = Nanos::millis(8);
    const THERE: Nanos = Nanos::micros(500);

    impl Way {
        fn new(fates: &[Fate], stateful: bool, mode: Mode) -> Way {
            let reflector = Reflector::new(mode, Format::Ntp, stateful);
            let clock = ReflectorClock { synchronised: true, error: Nanos::millis(2) };
            Way { fates: fates.to_vec(), offset: 0, reflector, clock }
        }

        fn run(&mut self, options: SenderOptions) -> StampReport {
            let mut sender = Sender::new(SenderOptions { count: self.fates.len() as u32, ..options });
            let mut now = Nanos::secs(1_700_000_000);
            let mut coming: Vec<(Nanos, Vec<u8>)> = Vec::new();
            sender.handle(now, Event::Started);
            loop {
                let mut wake = Nanos::MAX;
                while let Some(action) = sender.next(now) {
                    match action {
                        Action::Done(_) => return sender.report(),
                        Action::WakeAt(at) => wake = at,
                        Action::Reply(reply) => {
                            self.answer(&reply, now, &mut coming);
                            sender.handle(now, Event::Sent { path: 0, seq: reply.seq, at: now + Nanos(700) });
                        }
                        _ => {}
                    }
                }
                coming.sort();
                let first = coming.first().map_or(Nanos::MAX, |c| c.0);
                now = now.max(wake.min(first));
                if first <= wake {
                    let packet = coming.remove(0).1;
                    let (size, batch) = (packet.len() as u16 + 28, Batch::SINGLE);
                    sender.handle(now, Event::Received { path: 0, packet: &packet, size, dscp: 10, at: now, batch });
                } else {
                    sender.handle(now, Event::Timer);
                }
            }
        }

        fn answer(&mut self, reply: &Reply, now: Nanos, coming: &mut Vec<(Nanos, Vec<u8>)>) {
            let fate = self.fates[reply.seq as usize];
            if fate == Fate::LostOut {
                return;
            }
            let at = Nanos((now + Nanos(700) + OUT).0.saturating_add_signed(self.offset));
            let request = Request { from: b"s", packet: &reply.payload, ttl: 60, at };
            let answer = self.reflector.reflect(&request, at + THERE, self.clock).unwrap();
            let copies = match fate {
                Fate::Fine => 1,
                Fate::Twice => 2,
                Fate::LostOut | Fate::LostIn => 0,
            };
            for copy in 0..copies {
                coming.push((now + Nanos(700) + OUT + THERE + BACK + Nanos(copy), answer.clone()));
            }
        }
    }

    fn synchronised() -> SenderOptions {
        SenderOptions { synchronised: true, error: Nanos::millis(1), ssid: 7, ..SenderOptions::default() }
    }

    fn is(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 3e-9
    }

    #[test]
    fn round_trips_and_one_way_delays() {
        for mode in [Mode::Open, Mode::Authenticated(StampKey::new(b"k"))] {
            let report = Way::new(&[Fate::Fine; 5], false, mode.clone()).run(SenderOptions { mode, ..synchronised() });
            assert_eq!((report.sent, report.received, report.lost, report.lost_out), (5, 5, 0, Some(0)));
            let (out, back) = (report.out_s.unwrap(), report.in_s.unwrap());
            assert!(is(report.round_trip_s.unwrap().median, 0.011), "{report:?}");
            assert!(is(out.minimum.unwrap(), 0.003) && is(back.minimum.unwrap(), 0.008), "{report:?}");
            assert!((out.error.unwrap() - 0.003).abs() < 2e-5, "{report:?}");
            assert_eq!((report.ttl_out, report.dscp_in), (Some(60), Some(10)));
        }
    }

    #[test]
    fn without_synchronised_clocks_there_is_no_absolute_delay() {
        let mut way = Way::new(&[Fate::Fine; 3], false, Mode::Open);
        way.offset = -5_000_000_000;
        way.clock.synchronised = false;
        let report = way.run(synchronised());
        let out = report.out_s.unwrap();
        assert_eq!((out.synchronised, out.minimum, out.error), (false, None, None));
        assert!(is(report.round_trip_s.unwrap().p95, 0.011) && is(out.p95_above_minimum, 0.0), "{report:?}");
    }

    #[test]
    fn a_counting_reflector_tells_where_packets_were_lost() {
        let fates = [Fate::Fine, Fate::LostOut, Fate::LostIn, Fate::LostOut, Fate::Twice, Fate::Fine];
        let report = Way::new(&fates, true, Mode::Open).run(synchronised());
        assert_eq!((report.sent, report.received, report.lost, report.duplicates), (6, 3, 3, 1));
        assert_eq!((report.lost_out, report.lost_in), (Some(2), Some(1)));
        let report = Way::new(&fates, false, Mode::Open).run(synchronised());
        assert_eq!((report.lost, report.lost_out, report.lost_in), (3, None, None));
    }

    #[test]
    fn silence_ends() {
        let report = Way::new(&[Fate::LostOut; 3], false, Mode::Open).run(synchronised());
        assert_eq!((report.sent, report.received, report.lost), (3, 0, 3));
        assert_eq!((report.round_trip_s, report.out_s, report.lost_out), (None, None, None));
    }

    #[test]
    fn answers_to_others_are_not_taken() {
        let mut sender = Sender::new(SenderOptions::default());
        let now = Nanos::secs(1_700_000_000);
        sender.handle(now, Event::Started);
        let payload = std::iter::from_fn(|| sender.next(now)).find_map(|a| match a {
            Action::Reply(reply) => Some(reply.payload),
            _ => None,
        });
        let good = [payload.clone().unwrap(), vec![0; 16]].concat();
        let mut reflector = Reflector::new(Mode::Open, Format::Ntp, false);
        let clock = ReflectorClock { synchronised: true, error: Nanos(1) };
        let mut tell = |packet: &[u8]| {
            sender.receive(packet, 0, now);
            sender.report().received
        };
        assert_eq!(tell(&good), 0, "our own packet");
        for (at, value) in [(3, 5), (11, 1), (15, 9)] {
            let mut other = good.clone();
            other[at] ^= value; // number, time, session
            let request = Request { from: b"s", packet: &other, ttl: 1, at: now };
            assert_eq!(tell(&reflector.reflect(&request, now, clock).unwrap()), 0, "byte {at}");
        }
        let request = Request { from: b"s", packet: &good, ttl: 1, at: now };
        assert_eq!(tell(&reflector.reflect(&request, now, clock).unwrap()), 1);
    }

    #[test]
    fn padding() {
        let open = |payload| pad(vec![9; 44], payload, &Mode::Open);
        assert_eq!((open(0).len(), open(47).len(), open(47)[44..].to_vec()), (44, 47, vec![0; 3]));
        assert_eq!(open(50)[44..], [0x80, 1, 0, 2, 0, 0]);
        let closed = pad(vec![9; 112], 120, &Mode::Authenticated(StampKey::new(b"k")));
        assert_eq!((closed.len(), &closed[112..]), (120, &[0; 8][..]));
    }
}
