//! Policer and loss in bursts against their closed forms, on the plain link and on the fair one.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Cause, Cross, DeferredLink, Fair, GilbertElliott, Link, Loss, Offered, Params, Policer, Queue};

const MBIT: u64 = 1_000_000;

fn policed(mbit: u64, burst: u64) -> Params {
    Params { policer: Some(Policer { rate: Rate(mbit * MBIT), burst: Bytes(burst) }), ..Params::default() }
}

#[test]
fn a_policer_passes_its_burst_at_once_and_then_its_rate() {
    // 12 Mbit/s is a packet of 1500 B a millisecond; ten packets at once, then every eighth of eight a millisecond
    let mut link = Link::new(policed(12, 15_000), 1, "l");
    let taken: Vec<u64> =
        (0..80_000u64).map(|i| i * 125_000).filter(|&at| link.offer(Nanos(at), 1500, ()).is_ok()).collect();
    // tokens come while the burst goes: the k-th packet passes when k packets <= 10 + t
    let passes = |k: u64| if k <= 10 { (k - 1) * 125_000 } else { ((k - 10) * 1_000_000).div_ceil(125_000) * 125_000 };
    // at eight times the rate the burst lasts 10 / (1 - 1/8) packets
    assert_eq!(taken[..11], (0..11).map(|i| i * 125_000).collect::<Vec<_>>());
    assert_eq!(taken[20..], (21..=taken.len() as u64).map(passes).collect::<Vec<_>>());
    assert_eq!(taken.len(), 10_000 + 9, "the rate for 10 s and the burst");
    let dropped = link.counters().dropped;
    assert_eq!((dropped.policer.packets, dropped.all().packets), (80_000 - 10_009, 80_000 - 10_009));
    assert_eq!(link.counters().queue_max.packets, 0, "nothing waits");
}

#[test]
fn what_is_larger_than_the_burst_never_passes_and_costs_nothing() {
    let mut link = Link::new(Params { overhead: Bytes(38), ..policed(12, 3000) }, 1, "l");
    let refused = link.offer(Nanos::secs(1), 2963, 7).unwrap_err();
    assert_eq!((refused.cause, refused.packet), (Cause::Policer, 7));
    assert!(link.offer(Nanos::secs(1), 2962, 8).is_ok());
    assert!(link.offer(Nanos::secs(1), 1, 9).is_err());
}

#[test]
fn cross_traffic_is_policed_too() {
    let mut link: Link<()> = Link::new(policed(12, 1500), 1, "l");
    link.add_cross("x", &Cross::Constant { rate: Rate(48 * MBIT), packet: Bytes(1500) }, Nanos(0), None);
    link.advance(Nanos::secs(10));
    let cross = link.counters().cross;
    assert_eq!(cross.offered.packets, cross.entered.packets + cross.dropped.packets);
    assert!((9_999..=10_001).contains(&cross.entered.packets), "{cross:?}");
}

#[test]
fn the_tokens_of_a_policer_survive_a_change() {
    let mut link = Link::new(policed(8, 3000), 1, "l");
    assert!(link.offer(Nanos(0), 2000, ()).is_ok());
    // 1500 bytes are there at 0.5 ms, and come at 2 bytes a microsecond from then on
    link.set(Nanos(500_000), policed(16, 6000));
    let passes = |at: u64| link.clone().offer(Nanos(at), 4500, ()).is_ok();
    assert_eq!((passes(1_999_999), passes(2_000_000)), (false, true));
}

/// Shares of lost packets, and of losses that follow a loss, over many packets.
fn shares(loss: Loss, packets: u32) -> (f64, f64) {
    let mut link = Link::new(Params { loss, ..Params::default() }, 11, "l");
    let (mut lost, mut after, mut last) = (0u32, 0u32, false);
    for i in 0..packets {
        link.offer(Nanos(u64::from(i)), 1500, i).unwrap();
        let now = link.pop(Nanos(u64::from(i))).unwrap().lost;
        lost += u32::from(now);
        after += u32::from(now && last);
        last = now;
    }
    (f64::from(lost) / f64::from(packets), f64::from(after) / f64::from(lost))
}

/// The chain is bad for p / (p + r) of all packets; a stay in the bad state lasts 1 / r packets.
#[test]
fn bursts_have_their_share_and_length() {
    for (p, r, good, bad) in [(0.01, 0.25, 0.0, 1.0), (0.002, 0.1, 0.0, 1.0), (0.02, 0.2, 0.01, 0.5)] {
        let (lost, after) = shares(Loss::Bursts(GilbertElliott { p, r, good, bad }), 2_000_000);
        let (in_bad, in_good) = (p / (p + r), r / (p + r));
        let share = in_bad * bad + in_good * good;
        // P(loss and loss) over P(loss)
        let twice = in_bad * bad * ((1.0 - r) * bad + r * good) + in_good * good * ((1.0 - p) * good + p * bad);
        assert!((lost / share - 1.0).abs() < 0.03, "{lost} of {share}");
        assert!((after / (twice / share) - 1.0).abs() < 0.03, "{after} of {}", twice / share);
        if (good, bad) == (0.0, 1.0) {
            let length = 1.0 / (1.0 - after);
            assert!((length * r - 1.0).abs() < 0.03, "bursts of {length} packets");
        }
    }
    let (lost, after) = shares(Loss::Random(0.05), 2_000_000);
    assert!((lost - 0.05).abs() < 0.001 && (after - 0.05).abs() < 0.004, "{lost} {after}");
}

#[test]
fn a_chain_goes_on_when_something_else_changes() {
    let loss = Loss::Bursts(GilbertElliott { p: 0.05, r: 0.1, good: 0.0, bad: 1.0 });
    let run = |set: bool| {
        let mut link = Link::new(Params { loss, ..Params::default() }, 3, "l");
        let lost = (0..5000u64).map(|i| {
            if set {
                link.set(Nanos(i), link.params().clone());
            }
            link.offer(Nanos(i), 1500, i).unwrap();
            link.pop(Nanos(i)).unwrap().lost
        });
        lost.collect::<Vec<_>>()
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn the_fair_link_polices_and_loses_alike() {
    let loss = Loss::Bursts(GilbertElliott { p: 0.05, r: 0.3, good: 0.0, bad: 1.0 });
    let params = Params { loss, rate: Some(Rate(24 * MBIT)), ..policed(12, 6000) };
    let fair = Queue::Fair(Fair { packets: 1000, quantum: Bytes(1514) });
    let mut plain = Link::new(params.clone(), 5, "l");
    let mut fair = DeferredLink::new(Params { queue: fair, ..params }, 5, "l");
    for i in 0..20_000u32 {
        let at = Nanos(u64::from(i) * 300_000);
        let taken = plain.offer(at, 1500, i).is_ok();
        assert_eq!(fair.offer(at, 1500, 0, i) == Offered::Taken, taken);
        while let Some(released) = plain.pop(at) {
            assert_eq!(fair.pop(at), Some(released));
        }
    }
    assert_eq!(plain.counters(), fair.counters());
    assert!(plain.counters().dropped.policer.packets > 1000 && plain.counters().dropped.loss.packets > 500);
}

#[test]
fn bursts_lose_all_in_the_bad_state_unless_told_otherwise() {
    let told: Loss = serde_json::from_str(r#"{"kind": "gilbert-elliott", "p": 0.1, "r": 0.4}"#).unwrap();
    assert_eq!(told, Loss::Bursts(GilbertElliott { p: 0.1, r: 0.4, good: 0.0, bad: 1.0 }));
}

/// The first packet after bursts are set finds the bad state with its long-run share, p / (p + r).
#[test]
fn bursts_that_are_set_begin_as_they_go_on() {
    let (p, r) = (0.03, 0.07);
    let bursts = Params { loss: Loss::Bursts(GilbertElliott { p, r, good: 0.0, bad: 1.0 }), ..Params::default() };
    let first = |seed| {
        let mut link = Link::new(Params::default(), seed, "l");
        link.set(Nanos(0), bursts.clone());
        link.offer(Nanos(0), 1500, ()).unwrap();
        link.pop(Nanos::secs(1)).unwrap().lost
    };
    let lost = (0..4000).filter(|&seed| first(seed)).count();
    // 1200 are expected, with a standard deviation of 29
    assert!((1200i64 - lost as i64).abs() < 120, "{lost}");
}
