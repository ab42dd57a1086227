//! A copy of a network goes on as the network itself does, and by itself; with a seed of its own, otherwise.

use std::net::IpAddr;

use pathcast_base::{Nanos, PathAddr, Protocol, TransferReport};
use pathcast_measure::machine::{Action, Event, Machine};
use pathcast_sim::{Continuation, TransferError, World};

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
            pairs: paths(if n % 3 == 0 { &["p1", "p2"] } else { &["p2"] }),
            bytes: 300_000 + 100_000 * n,
            control: (n % 2 == 0).then(|| "reno".into()),
            protocol: if n % 3 == 0 { Protocol::Mptcp } else { Protocol::Tcp },
            every: None,
            seed: (n > 4).then_some(n),
        })
        .collect();
    let one_by_one: Vec<_> =
        all.iter().map(|one| world.continuations(std::slice::from_ref(one), 1, || false).remove(0)).collect();
    assert!(one_by_one.iter().all(Result::is_ok), "{one_by_one:?}");
    for threads in [1, 2, 4] {
        assert_eq!(world.continuations(&all, threads, || false), one_by_one);
    }
    let of = &all[1];
    let alone = world.transfer(&of.pairs, of.bytes, None, of.protocol, |_| true);
    assert_eq!(alone, one_by_one[1]);
}

#[test]
fn one_that_fails_does_not_touch_the_others_and_a_wish_ends_all() {
    let world = World::open(TEXT, &[]).unwrap();
    let good = |name: &str| Continuation {
        pairs: paths(&[name]),
        bytes: 50_000,
        control: None,
        protocol: Protocol::Tcp,
        every: None,
        seed: None,
    };
    let found = world.continuations(&[good("p1"), good("p3"), good("p2")], 2, || false);
    assert!(matches!(&found[..], [Ok(_), Err(TransferError::NoPath { name, .. }), Ok(_)] if name == "p3"), "{found:?}");
    let stopped = world.continuations(&[good("p1"), good("p2")], 2, || true);
    assert_eq!(stopped, [Err(TransferError::Interrupted), Err(TransferError::Interrupted)]);
}
