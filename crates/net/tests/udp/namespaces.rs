//! Two hosts with two paths between them. Needs root; skipped with a reason otherwise.

use pathcast_base::Nanos;
use pathcast_measure::machine::Train;

use super::common::netns::{Net, sweep};
use super::common::until;
use super::machines::{Echo, Script};
use super::{echoes, introduce, path, run, serve};

macro_rules! network {
    ($name:literal) => {{
        sweep();
        match Net::new($name) {
            Some(net) => net,
            None => return,
        }
    }};
}

#[test]
fn every_path_between_namespaces() {
    let net = network!("every_path_between_namespaces");
    let server = serve(&*net.server(), &["0.0.0.0:5275", "[::]:5275"], Echo::default());
    let paths = [
        path("10.7.1.1", "10.7.3.1"),
        path("10.7.2.1", "10.7.4.1"),
        path("fd07:1::1", "fd07:3::1"),
        path("fd07:2::1", "fd07:4::1"),
    ];
    let introduced = introduce(&*net.client(), &paths, 5275);
    let trains = (0..4).map(|p| echoes(p, 40, Nanos::micros(500), 1400).marked(34)).collect();
    let mut script = Script::new(trains, 160);
    let driven = run(&*net.client(), &paths, 5275, &mut script);
    for p in 0..4 {
        let received = script.received(p);
        assert_eq!((script.sent(p).len(), received.len()), (40, 40));
        assert!(received.iter().all(|r| r.1 == 1400 && r.2 == 34), "path {p}");
    }
    assert!(driven.tally.sent_stamped >= 150 && driven.tally.received_stamped >= 150, "{:?}", driven.tally);
    let seen = |dscp| server.with(|echo| echo.seen.iter().filter(|s| s.1 == dscp).count());
    assert_eq!((seen(34), seen(0)), (160, 4 * introduced));
    // an answer may be here before its stamp is told there
    assert!(until(|| server.with(|echo| echo.sent.len()) == 160 + 4 * introduced), "{:?}", server.tally());
}

#[test]
fn larger_than_the_path_or_without_a_route_is_unsent() {
    let net = network!("larger_than_the_path_or_without_a_route_is_unsent");
    let _server = serve(&*net.server(), &["0.0.0.0:5275", "[::]:5275"], Echo::default());
    let paths = [path("10.7.1.1", "10.7.3.1"), path("fd07:1::1", "fd07:3::1")];
    introduce(&*net.client(), &paths, 5275);
    let large = |path| Train { seq: 7000, ..echoes(path, 5, Nanos::millis(1), 1501) };
    let trains = (0..2).flat_map(|p| [echoes(p, 20, Nanos::micros(300), 1500), large(p)]).collect();
    let mut script = Script::new(trains, 40);
    let driven = run(&*net.client(), &paths, 5275, &mut script);
    for p in 0..2 {
        assert_eq!(script.unsent(p), (7000..7005).collect::<Vec<_>>());
        assert_eq!((script.sent(p).len(), script.received(p).len()), (20, 20));
    }
    assert!(driven.tally.sent_stamped >= 30, "{:?}", driven.tally);

    assert!(net.ip("c", "-4 route del default table 1") && net.ip("c", "-4 route flush default"));
    let mut script = Script::new(vec![echoes(0, 10, Nanos::micros(300), 200)], 0);
    let driven = run(&*net.client(), &[path("10.7.1.1", "10.7.3.1")], 5275, &mut script);
    assert_eq!(script.unsent(0), (0..10).collect::<Vec<_>>());
    assert_eq!((script.sent(0).len(), driven.tally.unsent), (0, 10));
}

#[test]
fn a_smaller_mtu_on_the_way_is_told() {
    let net = network!("a_smaller_mtu_on_the_way_is_told");
    let _server = serve(&*net.server(), &["0.0.0.0:5275"], Echo::default());
    assert!(net.ip("r", "link set r3 mtu 1300") && net.ip("s", "link set s1 mtu 1300"));
    let mut script = Script::new(vec![echoes(0, 20, Nanos::millis(1), 1400)], 0);
    let driven = run(&*net.client(), &[path("10.7.1.1", "10.7.3.1")], 5275, &mut script);
    let (sent, unsent) = (script.sent(0), script.unsent(0));
    assert_eq!(sent.len() + unsent.len(), 20);
    assert!(unsent.len() >= 10 && !sent.is_empty(), "the router says so after the first: {:?}", driven.tally);
    assert!(script.received(0).is_empty(), "nothing is cut in pieces");
}
