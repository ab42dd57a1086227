//! A copy of a network goes on as the network itself does, and by itself; with a seed of its own, otherwise.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use pathcast_base::{Nanos, PathAddr, Protocol, TransferReport};
use pathcast_measure::machine::{Action, Event, Machine};
use pathcast_scenario::Template;
use pathcast_sim::{Continuation, Draw, TransferError, World, draws};

/// Random traffic and losses, queues with random drops and with jitter, greedy connections and pages.
const TEXT: &str = r#"
seed = 4
[[link]]
name = "one"
a = "client"
b = "server"
rate = "20Mbit"
delay = "15ms"
queue = { kind = "red", min = 5, max = 30, limit = 60 }
loss = { kind = "gilbert-elliott", p = 0.001, r = 0.3 }
[[link]]
name = "two"
a = "client"
b = "server"
rate = "8Mbit"
delay = "30ms"
queue = { kind = "pie" }
jitter = { amplitude = "3ms" }
[[path]]
name = "p1"
links = ["one"]
[[path]]
name = "p2"
links = ["two"]
[[traffic]]
kind = "pareto-onoff"
link = "one"
direction = "ab"
rate = "4Mbit"
peak = "12Mbit"
on = "80ms"
[[traffic]]
kind = "web"
path = "p1"
clients = 3
think = "300ms"
[[traffic]]
kind = "tcp"
path = "p2"
flows = 2
[[change]]
at = "4s"
link = "two"
rate = "5Mbit"
"#;

static NEVER: AtomicBool = AtomicBool::new(false);

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).into()).collect()
}

fn paths(names: &[&str]) -> Vec<PathAddr> {
    names.iter().map(|name| PathAddr::new(*name, IpAddr::from([0; 4]), IpAddr::from([0; 4]))).collect()
}

fn transfer(world: &mut World, seconds: u64) -> (TransferReport, Nanos, String) {
    world.wait(Nanos::secs(seconds));
    let report = world.transfer(&paths(&["p1", "p2"]), 2_000_000, Some("lia"), Protocol::Mptcp, |_| true).unwrap();
    world.check().unwrap();
    (report, world.now(), serde_json::to_string(&world.ledger()).unwrap())
}

#[test]
fn copies_go_on_by_themselves_as_the_network_would() {
    let mut world = World::open(TEXT, &[]).unwrap();
    world.wait(Nanos::millis(2_345));
    let mut copies: Vec<World> = (0..3).map(|_| world.copy().unwrap()).collect();
    let mut uncopied = World::open(TEXT, &[]).unwrap();
    uncopied.wait(Nanos::millis(2_345));
    let expected = transfer(&mut uncopied, 1);
    assert!(expected.0.subflows.iter().any(|subflow| subflow.retransmits > 0), "{:?}", expected.0);
    // what happens in one does not happen in the next
    copies.iter_mut().for_each(|copy| assert_eq!(transfer(copy, 1), expected));
    assert_eq!(transfer(&mut world, 1), expected);
    // and a copy of a copy, after a transfer and at another time
    let again = transfer(&mut uncopied, 3);
    assert_eq!(transfer(&mut copies[1].copy().unwrap(), 3), again);
    assert_eq!(transfer(&mut copies[1], 3), again);
}

#[test]
fn a_copy_may_be_changed_by_the_words_of_its_text() {
    let mut world = World::open(TEXT, &[]).unwrap();
    world.amend("one", None, &[("rate".into(), "2Mbit".into())]).unwrap();
    let mut copy = world.copy().unwrap();
    copy.amend("one", None, &[("delay".into(), "50ms".into())]).unwrap();
    assert_eq!(
        (copy.scenario().links[0].ab.delay, copy.scenario().links[0].ab.rate.unwrap().0),
        (Nanos::millis(50), 2_000_000)
    );
    assert_eq!(world.scenario().links[0].ab.delay, Nanos::millis(15));
}

#[test]
fn seeds_of_their_own_draw_other_futures_and_the_same_seed_the_same() {
    let mut world = World::open(TEXT, &[]).unwrap();
    world.wait(Nanos::secs(2));
    let with = |seed: u64| {
        let mut copy = world.copy().unwrap();
        copy.reseed(seed);
        transfer(&mut copy, 0)
    };
    let found: Vec<_> = (1..6).map(with).collect();
    assert!((0..5).all(|i| (0..i).all(|j| found[i].2 != found[j].2)));
    assert_eq!(with(3), found[2]);
    assert_ne!(transfer(&mut world.copy().unwrap(), 0).2, with(4).2);
}

/// A seed of its own moves nothing where nothing is drawn, and what waits in a queue that draws is still there.
#[test]
fn a_seed_changes_nothing_but_what_is_drawn() {
    let still = "[[link]]\nname = \"one\"\na = \"client\"\nb = \"server\"\nrate = \"9Mbit\"\ndelay = \"7ms\"\n\
                 queue = { kind = \"fq_codel\" }\n[[path]]\nname = \"p1\"\nlinks = [\"one\"]\n\
                 [[path]]\nname = \"p2\"\nlinks = [\"one\"]\n[[traffic]]\nkind = \"tcp\"\npath = \"p1\"\nflows = 3\n";
    let mut world = World::open(still, &[]).unwrap();
    world.wait(Nanos::secs(2));
    let mut copy = world.copy().unwrap();
    copy.reseed(99);
    assert_eq!(transfer(&mut copy, 1), transfer(&mut world, 1));
}

/// Waits for ever.
struct Idle;

impl Machine for Idle {
    fn handle(&mut self, _: Nanos, _: Event<'_>) {}
    fn next(&mut self, _: Nanos) -> Option<Action> {
        None
    }
}

#[test]
fn not_while_a_measurement_goes_on() {
    let mut world = World::open(TEXT, &[]).unwrap();
    let session = world.open_session(Box::new(Idle), Box::new(Idle), &[0]).unwrap();
    assert_eq!(world.copy().err().unwrap().to_string(), "a network cannot be copied while a measurement goes on in it");
    let options = pathcast_sim::Options { time: Nanos::secs(1), ..pathcast_sim::Options::default() };
    world.conclude(session, &options, |_| ()).unwrap_err();
    let mut copy = world.copy().unwrap();
    assert_eq!(transfer(&mut copy, 0), transfer(&mut world, 0));
}

/// In any number of threads, one by one, and by the network itself.
#[test]
fn continuations_come_in_order_and_as_one_by_one() {
    let mut world = World::open(TEXT, &[]).unwrap();
    world.wait(Nanos::secs(1));
    let all: Vec<Continuation> = (0..9)
        .map(|n| Continuation {
            paths: names(if n % 3 == 0 { &["p1", "p2"] } else { &["p2"] }),
            bytes: 300_000 + 100_000 * n,
            control: (n % 2 == 0).then(|| "reno".into()),
            protocol: if n % 3 == 0 { Protocol::Mptcp } else { Protocol::Tcp },
            every: None,
            plain: false,
            seed: (n > 4).then_some(n),
        })
        .collect();
    let one_by_one: Vec<_> =
        all.iter().map(|one| world.continuations(std::slice::from_ref(one), 1, &NEVER).remove(0)).collect();
    assert!(one_by_one.iter().all(Result::is_ok), "{one_by_one:?}");
    for threads in [1, 2, 4] {
        assert_eq!(world.continuations(&all, threads, &NEVER), one_by_one);
    }
    let of = &all[1];
    let alone = world.transfer(&world.pairs(&of.paths).unwrap(), of.bytes, None, of.protocol, |_| true);
    assert_eq!(alone, one_by_one[1]);
}

#[test]
fn one_that_fails_does_not_touch_the_others_and_a_wish_ends_all() {
    let world = World::open(TEXT, &[]).unwrap();
    let good = |name: &str| Continuation {
        paths: names(&[name]),
        bytes: 50_000,
        control: None,
        protocol: Protocol::Tcp,
        every: None,
        plain: false,
        seed: None,
    };
    let found = world.continuations(&[good("p1"), good("p3"), good("p2")], 2, &NEVER);
    assert!(matches!(&found[..], [Ok(_), Err(TransferError::NoPath { name, .. }), Ok(_)] if name == "p3"), "{found:?}");
    let stopped = world.continuations(&[good("p1"), good("p2")], 2, &AtomicBool::new(true));
    assert_eq!(stopped, [Err(TransferError::Interrupted), Err(TransferError::Interrupted)]);
}

/// Of a template that is read once: each draw's network is the one that its text makes, whoever draws beside it.
#[test]
fn draws_come_in_order_and_as_one_by_one() {
    let template = Template::parse_in(TEXT, None).unwrap();
    let then = |n: u64| Continuation {
        paths: names(&["p1", "p2", "p1"][..1 + n as usize % 2]),
        bytes: 400_000,
        control: None,
        protocol: if n.is_multiple_of(2) { Protocol::Tcp } else { Protocol::Mptcp },
        every: Some(Nanos::millis(100)),
        plain: false,
        seed: (n > 1).then_some(n),
    };
    let sets = |n: u64| vec![("seed".to_string(), n.to_string()), ("link.one.rate".into(), format!("{}Mbit", 5 + n))];
    let all: Vec<Draw> =
        (0..6).map(|n| Draw { sets: sets(n), wait: Nanos::millis(700), then: (0..3).map(then).collect() }).collect();
    let found: Vec<_> = draws(&template, &all, u64::MAX, 3, &NEVER).into_iter().map(|one| one.ok().unwrap()).collect();
    for (draw, found) in all.iter().zip(&found) {
        let mut world = World::open(TEXT, &draw.sets).unwrap();
        world.wait(draw.wait);
        assert_eq!(&world.continuations(&draw.then, 1, &NEVER), found);
        assert!(found.iter().all(|one| one.as_ref().is_ok_and(|report| report.samples.len() > 1)), "{found:?}");
    }
    let mut wrong = all.clone();
    wrong[4].sets.push(("link.one.loss".into(), "7".into()));
    let found = draws(&template, &wrong, u64::MAX, 2, &NEVER);
    let failed: Vec<usize> = (0..6).filter(|n| found[*n].is_err()).collect();
    assert_eq!(failed, [4]);
    assert!(found[4].as_ref().err().unwrap().to_string().contains("link.one.loss=7"));
    let limited = draws(&template, &all[..1], 50, 2, &NEVER);
    assert!(limited[0].as_ref().err().unwrap().to_string().contains("50 events"));
}
