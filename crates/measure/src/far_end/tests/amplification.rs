//! What can be drawn from a far end with few bytes, by one who holds a key.

use pathcast_base::Rate;

use super::*;
use crate::request::MethodName;

/// IP and UDP headers [byte].
const HEADERS: u64 = 28;
/// What a session may be told beyond as many bytes as it sent [IP bytes].
const SLACK: u64 = 64_000;

/// IP bytes of a session: what went in, and what came out besides trains, and in trains.
#[derive(Default, Debug)]
struct Account {
    sent: u64,
    told: u64,
    probes: u64,
}

impl Account {
    fn say(&mut self, far: &mut FarEnd<usize>, now: Nanos, packet: &[u8]) {
        self.sent += packet.len() as u64 + HEADERS;
        let size = packet.len() as u16 + HEADERS as u16;
        far.handle(now, FarEvent::Received { from: 0, packet, size, dscp: 0, ecn: 0, at: now, batch: Batch::SINGLE });
        self.listen(far, now);
    }

    fn wait(&mut self, far: &mut FarEnd<usize>, now: Nanos) {
        far.handle(now, FarEvent::Timer);
        self.listen(far, now);
    }

    fn listen(&mut self, far: &mut FarEnd<usize>, now: Nanos) {
        while let Some(action) = far.next(now) {
            match action {
                FarAction::Reply { reply, .. } => {
                    self.told += (reply.payload.len() as u64 + HEADERS).max(reply.size.into());
                }
                FarAction::SendTrain { train, .. } => self.probes += train.count() as u64 * u64::from(train.size),
                _ => {}
            }
        }
    }
}

fn probe(channel: &Channel, part: u8, train: u32, index: u16, count: u16) -> Vec<u8> {
    let mut packet = vec![0; PROBE];
    channel.send.probe(0, part, channel.session, ProbeHead { train, index, count, rest: 0 }, &mut packet);
    packet
}

#[test]
fn a_train_that_is_claimed_to_be_long_has_a_report_as_short_as_what_came() {
    let (mut far, channel) = opened(MeasureLimits::default());
    let mut account = Account::default();
    for train in 0..100 {
        account.say(&mut far, NOW, &probe(&channel, 1, train, u16::MAX - 1, u16::MAX));
    }
    for second in 1..5 {
        account.wait(&mut far, NOW + Nanos::secs(second));
    }
    assert!(account.told > 0 && account.told <= 2 * account.sent, "{account:?}");
}

#[test]
fn one_question_draws_the_report_of_a_train_once() {
    let (mut far, mut channel) = opened(MeasureLimits::default());
    let mut account = Account::default();
    for index in 0..300 {
        account.say(&mut far, NOW, &probe(&channel, 1, 0, index, 300));
    }
    let report = account.told;
    account.say(&mut far, NOW, &channel.seal(Kind::Ask, 1, &encode_ask(&[0; 32])).1);
    assert!(account.told <= 2 * report, "{account:?} after {report}");
}

#[test]
fn questions_draw_no_more_than_what_was_sent() {
    let (mut far, mut channel) = opened(MeasureLimits::default());
    let mut account = Account::default();
    for train in 0..32 {
        for index in 0..100 {
            account.say(&mut far, NOW, &probe(&channel, 1, train, index, 100));
        }
    }
    let trains: Vec<u32> = (0..32).collect();
    for ms in 0..10_000 {
        let now = NOW + Nanos::millis(ms);
        account.say(&mut far, now, &channel.seal(Kind::Ask, 1, &encode_ask(&trains)).1);
        assert!(account.told <= account.sent + SLACK, "after {ms} ms: {account:?}");
    }
    assert_eq!(far.sessions(), 1, "it may measure on");
}

#[test]
fn trains_of_which_nothing_came_are_told_together() {
    let (mut far, mut channel) = opened(MeasureLimits::default());
    let mut account = Account::default();
    account.say(&mut far, NOW, &channel.seal(Kind::Ask, 1, &encode_ask(&(0..32).collect::<Vec<u32>>())).1);
    assert!(account.told < 4 * account.sent, "{account:?}");
}

#[test]
fn reports_are_within_the_rate() {
    let rate = Rate(200_000);
    let (mut far, mut channel) = opened(MeasureLimits { rate, ..MeasureLimits::default() });
    let mut account = Account::default();
    for turn in 0..500 {
        let now = NOW + Nanos::millis(20) * u64::from(turn);
        for train in turn * 20..turn * 20 + 20 {
            account.say(&mut far, now, &probe(&channel, 1, train, 0, 2));
            account.say(&mut far, now, &probe(&channel, 1, train, 1, 2));
        }
        account.say(&mut far, now, &channel.seal(Kind::Ask, 1, &encode_ask(&[turn * 20])).1);
    }
    let granted = rate.0 / 8 * 10 + 300_000;
    assert!(
        account.sent > granted && account.told > granted / 2 && account.told <= granted,
        "{account:?} of {granted}"
    );
}

#[test]
fn parts_have_one_rate_together() {
    let rate = Rate(1_000_000);
    let (mut far, mut channel) = opened(MeasureLimits { rate, ..MeasureLimits::default() });
    let mut account = Account::default();
    let budget = Budget { bytes: Bytes(u64::MAX), time: Nanos::secs(100) };
    for part in 1..=200 {
        let method = MethodName::ALL[usize::from(part) % MethodName::ALL.len()];
        let begin = Begin {
            method,
            budget,
            sparing: false,
            effort: pathcast_estimate::Effort::Usual,
            seed: part.into(),
            wait: Nanos::secs(5),
        };
        account.say(&mut far, NOW, &channel.seal(Kind::Begin, part, &begin.encode()).1);
        account.wait(&mut far, NOW + Nanos(u64::from(part)));
    }
    assert!(account.probes <= 300_000, "{account:?}");
}

#[test]
fn questions_of_the_time_count_as_probes_beyond_what_clocks_need() {
    let (mut far, mut channel) = opened(MeasureLimits { bytes: Bytes(100_000), ..MeasureLimits::default() });
    let mut account = Account::default();
    for id in 0..1000u32 {
        let mut packet = channel.seal(Kind::Time, 0, &id.to_be_bytes()).1;
        packet.resize(1472, 0);
        account.say(&mut far, NOW, &packet);
    }
    // half of the limit and of what clocks need is told, half is asked
    assert!((50_000..=82_000 + 1500).contains(&account.told) && far.sessions() == 0, "{account:?}");
}

#[test]
fn a_train_is_told_so_often_and_no_more() {
    let (mut far, mut channel) = opened(MeasureLimits::default());
    let mut account = Account::default();
    for index in 0..300 {
        account.say(&mut far, NOW, &probe(&channel, 1, 0, index, 300));
    }
    let report = account.told;
    for _ in 0..100 {
        account.say(&mut far, NOW, &channel.seal(Kind::Ask, 1, &encode_ask(&[0, 1])).1);
    }
    assert!(account.told > 4 * report && account.told < 12 * report, "{account:?} after {report}");
    assert_eq!(far.counters().withheld, 0);
}

#[test]
fn who_comes_and_goes_makes_no_noise_for_those_who_wait() {
    let (mut far, mut first) = opened(MeasureLimits::default());
    let (mut second, _) = open(&mut far, 6);
    let (_, answers) = open(&mut far, 7);
    assert_eq!(answers, [Kind::Queued]);
    for nonce in 10..100 {
        let (mut passing, answers) = open(&mut far, nonce);
        assert_eq!(answers, [Kind::Queued]);
        assert_eq!(kinds(&said_to(&mut far, NOW, &passing.seal(Kind::Bye, 0, &[]).1)), [Kind::Bye]);
    }
    assert_eq!(
        kinds(&said_to(&mut far, NOW, &second.seal(Kind::Bye, 0, &[]).1)),
        [Kind::Bye, Kind::Queued],
        "it moved up"
    );
    assert_eq!(kinds(&said_to(&mut far, NOW, &first.seal(Kind::Bye, 0, &[]).1)), [Kind::Bye, Kind::Opened]);
}

#[test]
fn large_answers_to_small_questions_are_few_and_count_as_probes() {
    let limits = MeasureLimits { bytes: Bytes(300_000), ..MeasureLimits::default() };
    let (mut far, mut channel) = opened(limits);
    let mut account = Account::default();
    for id in 0..1000 {
        let echo = Echo { id, size: 9000, class: 3 }.encode();
        account.say(&mut far, NOW, &channel.seal(Kind::Echo, 0, &echo).1);
    }
    assert!(account.told >= 7 * 9000 && account.told <= account.sent + SLACK + 100, "{account:?}");
    assert_eq!((far.sessions(), far.counters().denied), (0, 1), "its bytes are used up");
}
