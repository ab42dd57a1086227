//! One of two lines is dead, before or during: the far end is reached over the other one. In namespaces; needs root,
//! skipped with a reason otherwise.

mod common;

use std::fmt::Debug;
use std::time::{Duration, Instant};

use common::netns::{Net, sweep};
use common::{acked, client, config, key, over, path, plain, tried, until};
use pathcast_base::{Exit, Fault};
use pathcast_net::{Client, PathAddr, Progress, Server, TransferOptions};

/// Within which a command shall have reached the far end. Those that wait for a dead line are none of them within it.
const SOON: Duration = Duration::from_secs(3);

/// What it has found, if that was soon.
fn soon<T: Debug>(begun: Instant, found: T) -> Result<T, String> {
    let took = begun.elapsed();
    if took < SOON { Ok(found) } else { Err(format!("{took:?}: {found:#?}")) }
}

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
        let (client, own) = tried(|| {
            let begun = Instant::now();
            let client = client(&net.client(), &server, "10.7.3.1");
            let found = client.survey().unwrap().usable;
            let own: Vec<_> = found.iter().filter(|p| p.remote.to_string() == "10.7.3.1").cloned().collect();
            // a dead line keeps its name
            assert_eq!(own.iter().map(|p| p.local.to_string()).collect::<Vec<_>>(), ["10.7.1.1", "10.7.2.1"]);
            let reached = client.reach(&own);
            // on a busy machine the line that lives, too, may be late
            if reached.iter().all(Result::is_err) {
                return Err(format!("{reached:?}"));
            }
            let reached = soon(begun, reached)?;
            for (path, result) in own.iter().zip(reached) {
                let silent = path.local.to_string() == format!("10.7.{dead}.1");
                assert_eq!(result.is_err(), silent, "{path:?}: {result:?}");
                if let Err(error) = result {
                    assert!(error.to_string().contains("no answer within"), "{error}");
                }
            }
            Ok((client, own))
        });
        net.mend(dead);
        assert!(until(|| client.reach(&own).iter().all(Result::is_ok)), "the line is back");
    }
}

#[test]
fn a_line_that_is_down_is_named() {
    let net = network!("a_line_that_is_down_is_named");
    let server = serve(&net);
    for (device, local, other) in [("c1", "10.7.1.1", "10.7.2.1"), ("c2", "10.7.2.1", "10.7.1.1")] {
        assert!(net.ip("c", &format!("link set {device} down")));
        let survey = tried(|| {
            let begun = Instant::now();
            let client = client(&net.client(), &server, "10.7.3.1");
            soon(begun, client.survey().unwrap())
        });
        assert!(!survey.usable.is_empty(), "{survey:#?}");
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
    let [first, second] = lines();
    // of one client both, since its session is on one of the lines, and then on the other
    let client = tried(|| {
        let client = client(&net.client(), &server, "10.7.3.1");
        let late = [(1, &second), (2, &first)].map(|(dead, living)| {
            net.cut(dead);
            let report = client.tcp_transfer(living, 100_000, &mut plain()).unwrap();
            net.mend(dead);
            (report.waited_s >= SOON.as_secs_f64()).then_some(report)
        });
        if late.iter().all(Option::is_none) { Ok(client) } else { Err(format!("{late:#?}")) }
    });
    assert_eq!(client.tcp_transfer(&first, 100_000, &mut plain()).unwrap().bytes, 100_000);
}

#[test]
fn a_connection_begins_over_the_line_that_lives_and_takes_the_other_back() {
    let net = network!("a_connection_begins_over_the_line_that_lives_and_takes_the_other_back");
    let server = serve(&net);
    let both = lines();
    let report = tried(|| {
        let client = client(&net.client(), &server, "10.7.3.1");
        net.shape("20mbit", "20mbit");
        net.cut(1);
        let (mut mended, mut back) = (false, false);
        let mut mend = |p: &Progress<'_>| {
            if !mended && p.bytes_acked > 1_000_000 {
                net.mend(1);
                mended = true;
            }
            // it is asked for 1, 3 and 7 s after the beginning: there is enough until the last of these, and no more to wait for
            if !back && acked(p, "p1") > 0 && acked(p, "p2") > 1_000_000 {
                net.shape("1gbit", "1gbit");
                back = true;
            }
        };
        let mut options = TransferOptions { on_sample: Some(&mut mend), ..plain() };
        let report = client.mptcp_transfer(&both, 40_000_000, &mut options).unwrap();
        if report.waited_s < SOON.as_secs_f64() { Ok(report) } else { Err(format!("{report:#?}")) }
    });
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
    let (mut back, mut used) = (false, false);
    let mut come_back = |p: &Progress<'_>| {
        if !back && p.elapsed_s > 1.0 {
            back = net.ip("c", "addr add 10.7.2.1/24 dev c2")
                && net.ip("c", "route replace default via 10.7.2.254 dev c2 table 2");
        }
        // 5 and 15 s after the beginning
        if !used && acked(p, "p2") > 0 {
            net.shape("1gbit", "1gbit");
            used = true;
        }
    };
    let mut options = TransferOptions { on_sample: Some(&mut come_back), ..plain() };
    let report = client.mptcp_transfer(&lines(), 30_000_000, &mut options).unwrap();
    assert!(over(&report, "p2").alive && over(&report, "p2").bytes_acked > 0, "{report:#?}");
}

/// It takes longest, and so begins first: by its name.
#[test]
fn a_client_without_any_line_is_told_of_each() {
    let net = network!("a_client_without_any_line_is_told_of_each");
    let _server = serve(&net);
    net.cut(1);
    net.cut(2);
    let begun = Instant::now();
    let error = Client::connect(net.client(), "10.7.3.1:5270".parse().unwrap(), key()).err().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
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
        let error = tried(|| {
            let begun = Instant::now();
            soon(begun, Client::connect(net.client(), "10.7.3.1:5271".parse().unwrap(), key()).err().unwrap())
        });
        assert!(error.to_string().contains("refused"), "{error}");
        net.mend(dead);
    }
}
