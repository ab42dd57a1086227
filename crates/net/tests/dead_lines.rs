//! One of two lines is dead, before or during: the far end is reached over the other one. In namespaces; needs root,
//! skipped with a reason otherwise.

mod common;

use std::time::{Duration, Instant};

use common::netns::{Net, sweep};
use common::{client, config, key, over, path, plain};
use pathcast_base::{Exit, Fault};
use pathcast_net::{Client, PathAddr, Server, TransferOptions};

/// Within which a command shall have reached the far end.
const SOON: Duration = Duration::from_secs(3);

macro_rules! network {
    ($name:literal) => {{
        sweep();
        match Net::new($name) {
            Some(net) => net,
            None => return,
        }
    }};
}

fn serve(net: &Net) -> Server {
    Server::start(net.server(), config(&["0.0.0.0:5270"])).unwrap()
}

/// Two lines to one address.
fn lines() -> [PathAddr; 2] {
    [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.3.1")]
}

#[test]
fn the_far_end_is_reached_over_the_line_that_lives() {
    let net = network!("the_far_end_is_reached_over_the_line_that_lives");
    let server = serve(&net);
    for dead in [1, 2] {
        net.cut(dead);
        let begun = Instant::now();
        let client = client(&net.client(), &server, "10.7.3.1");
        let found = client.survey().unwrap().usable;
        let own: Vec<_> = found.iter().filter(|p| p.remote.to_string() == "10.7.3.1").cloned().collect();
        // a dead line keeps its name
        assert_eq!(own.iter().map(|p| p.local.to_string()).collect::<Vec<_>>(), ["10.7.1.1", "10.7.2.1"]);
        let reached = client.reach(&own);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        for (path, result) in own.iter().zip(reached) {
            let silent = path.local.to_string() == format!("10.7.{dead}.1");
            assert_eq!(result.is_err(), silent, "{path:?}: {result:?}");
            if let Err(error) = result {
                assert!(error.to_string().contains("no answer within"), "{error}");
            }
        }
        net.mend(dead);
        assert!(client.reach(&own).iter().all(Result::is_ok), "the line is back");
    }
}

#[test]
fn a_line_that_is_down_is_named() {
    let net = network!("a_line_that_is_down_is_named");
    let server = serve(&net);
    for (device, local, other) in [("c1", "10.7.1.1", "10.7.2.1"), ("c2", "10.7.2.1", "10.7.1.1")] {
        assert!(net.ip("c", &format!("link set {device} down")));
        let begun = Instant::now();
        let client = client(&net.client(), &server, "10.7.3.1");
        let survey = client.survey().unwrap();
        assert!(begun.elapsed() < SOON);
        assert!(survey.usable.iter().all(|p| p.local.to_string() == other), "{survey:#?}");
        let said = survey.unusable.iter().find(|u| u.local.to_string() == local).unwrap();
        assert_eq!(said.reason, format!("{device} is down"));
        let n = &device[1..];
        assert!(net.ip("c", &format!("link set {device} up")));
        for table in ["main".to_owned(), n.to_owned()] {
            let metric = if table == "main" { format!("metric {n}") } else { String::new() };
            assert!(net.ip("c", &format!("route add default via 10.7.{n}.254 dev {device} table {table} {metric}")));
        }
    }
}

#[test]
fn a_session_goes_on_when_its_line_dies() {
    let net = network!("a_session_goes_on_when_its_line_dies");
    let server = serve(&net);
    let client = client(&net.client(), &server, "10.7.3.1");
    let [first, second] = lines();
    for (dead, living) in [(1, &second), (2, &first)] {
        net.cut(dead);
        let report = client.tcp_transfer(living, 100_000, &mut plain()).unwrap();
        assert!(report.waited_s < SOON.as_secs_f64(), "{report:#?}");
        net.mend(dead);
    }
    assert_eq!(client.tcp_transfer(&first, 100_000, &mut plain()).unwrap().bytes, 100_000);
}

#[test]
fn a_connection_begins_over_the_line_that_lives_and_takes_the_other_back() {
    let net = network!("a_connection_begins_over_the_line_that_lives_and_takes_the_other_back");
    net.shape("20mbit", "20mbit");
    let server = serve(&net);
    let client = client(&net.client(), &server, "10.7.3.1");
    let both = lines();
    net.cut(1);
    let mut mended = false;
    let mut mend = |p: &pathcast_net::Progress<'_>| {
        if !mended && p.bytes_acked > 1_000_000 {
            net.mend(1);
            mended = true;
        }
    };
    let mut options = TransferOptions { on_sample: Some(&mut mend), ..plain() };
    let report = client.mptcp_transfer(&both, 12_000_000, &mut options).unwrap();
    assert!(report.waited_s < SOON.as_secs_f64(), "{report:#?}");
    assert!(report.notes.iter().any(|n| n.starts_with("p1 was silent at the beginning")), "{report:#?}");
    assert!(over(&report, "p2").bytes_acked > 1_000_000);
    assert!(over(&report, "p1").alive && over(&report, "p1").bytes_acked > 0, "{report:#?}");
}

#[test]
fn a_connection_begins_over_another_line_where_the_firsts_address_is_gone() {
    let net = network!("a_connection_begins_over_another_line_where_the_firsts_address_is_gone");
    let server = serve(&net);
    let client = client(&net.client(), &server, "10.7.3.1");
    assert!(net.ip("c", "addr del 10.7.1.1/24 dev c1"));
    let report = client.mptcp_transfer(&lines(), 1_000_000, &mut plain()).unwrap();
    let told = "p1 was left out at the beginning: 10.7.1.1 is not an address of this host";
    assert!(report.notes.iter().any(|n| n == told), "{report:#?}");
    assert!(over(&report, "p2").bytes_acked >= 1_000_000, "{report:#?}");
    // where that of every line is, it is the caller's mistake
    assert!(net.ip("c", "addr add 10.7.9.1/24 dev c2") && net.ip("c", "addr del 10.7.2.1/24 dev c2"));
    assert!(net.ip("c", "route replace default via 10.7.2.254 dev c2 onlink src 10.7.9.1"));
    assert!(net.ip("r", "route add 10.7.9.0/24 dev r2"));
    let error = client.mptcp_transfer(&lines(), 1_000_000, &mut plain()).unwrap_err();
    assert_eq!((error.exit(), error.code()), (Exit::Usage, "not-local"), "{error}");
}

#[test]
fn a_subflow_that_could_not_be_made_is_asked_for_again() {
    let net = network!("a_subflow_that_could_not_be_made_is_asked_for_again");
    net.shape("10mbit", "10mbit");
    let server = serve(&net);
    let client = client(&net.client(), &server, "10.7.3.1");
    assert!(net.ip("c", "addr del 10.7.2.1/24 dev c2"));
    let mut back = false;
    let mut come_back = |p: &pathcast_net::Progress<'_>| {
        if !back && p.elapsed_s > 1.0 {
            back = net.ip("c", "addr add 10.7.2.1/24 dev c2")
                && net.ip("c", "route replace default via 10.7.2.254 dev c2 table 2");
        }
    };
    let mut options = TransferOptions { on_sample: Some(&mut come_back), ..plain() };
    let report = client.mptcp_transfer(&lines(), 10_000_000, &mut options).unwrap();
    assert!(over(&report, "p2").alive && over(&report, "p2").bytes_acked > 0, "{report:#?}");
}

#[test]
fn without_any_line_each_is_told() {
    let net = network!("without_any_line_each_is_told");
    let _server = serve(&net);
    net.cut(1);
    net.cut(2);
    let begun = Instant::now();
    let error = Client::connect(net.client(), "10.7.3.1:5270".parse().unwrap(), key()).err().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((error.exit(), error.code()), (Exit::Runtime, "no-connection"), "{error}");
    for line in ["from 10.7.1.1 to 10.7.3.1:5270", "from 10.7.2.1 to 10.7.3.1:5270"] {
        assert!(error.to_string().contains(line), "{error}");
    }
}

#[test]
fn no_far_end_is_told_at_once_though_a_line_is_dead() {
    let net = network!("no_far_end_is_told_at_once_though_a_line_is_dead");
    for dead in [1, 2] {
        net.cut(dead);
        let begun = Instant::now();
        let error = Client::connect(net.client(), "10.7.3.1:5271".parse().unwrap(), key()).err().unwrap();
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert!(error.to_string().contains("refused"), "{error}");
        net.mend(dead);
    }
}
