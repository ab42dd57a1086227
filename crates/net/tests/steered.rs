//! Steered transfers where the network or the kernel has less than they need: they go on without the steering. In
//! namespaces; needs root, skipped with a reason otherwise.

mod common;

use std::time::Duration;

use common::netns::{Net, sweep};
use common::{client, config, path, without_subflow_statistics};
use pathcast_net::{PathAddr, Server, TransferOptions};

macro_rules! network {
    ($name:literal) => {{
        sweep();
        match Net::new($name) {
            Some(net) => net,
            None => return,
        }
    }};
}

fn lines() -> [PathAddr; 2] {
    [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")]
}

/// By the steering, and not for ever.
fn steered<'a>() -> TransferOptions<'a> {
    TransferOptions { patience: Some(Duration::from_secs(2)), ..TransferOptions::default() }
}

#[test]
fn a_connection_that_falls_back_after_its_handshake_goes_on() {
    let net = network!("a_connection_that_falls_back_after_its_handshake_goes_on");
    // the handshake's first two packets keep MPTCP's option, nothing after them does
    let strip = "table inet t { chain o { type filter hook output priority 0; \
        tcp flags & syn == 0 reset tcp option mptcp; }; }";
    if !net.nft("c", strip) {
        println!("SKIPPED: a_connection_that_falls_back_after_its_handshake_goes_on: nft cannot strip options here");
        return;
    }
    let server = Server::start(net.server(), config(&["0.0.0.0:5270"])).unwrap();
    let client = client(&net.client(), &server, "10.7.3.1");
    let report = client.mptcp_transfer(&lines(), 20_000_000, &mut steered()).unwrap();
    assert!(report.fallback && report.bytes == 20_000_000, "{report:#?}");
    let first: Vec<_> = report.subflows.iter().filter(|s| s.path.as_deref() == Some("p1")).collect();
    assert!(first.len() == 1 && first[0].alive && first[0].bytes_acked >= 20_000_000, "{report:#?}");
}

#[test]
fn without_the_statistics_of_subflows_the_kernel_chooses() {
    let net = network!("without_the_statistics_of_subflows_the_kernel_chooses");
    net.shape("20mbit", "20mbit");
    let server = Server::start(net.server(), config(&["0.0.0.0:5270"])).unwrap();
    let client = client(&net.client(), &server, "10.7.3.1");
    // what is acknowledged is known all the same: nothing of it for 2 s would end it
    let report = without_subflow_statistics(|| client.mptcp_transfer(&lines(), 15_000_000, &mut steered()).unwrap());
    let over_second = net.sent("c", "c2");
    assert!(over_second > 3_000_000, "the second subflow stayed a backup: {over_second} bytes, {report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("the kernel's choice")), "{report:#?}");
    assert!(!report.fallback && report.bytes == 15_000_000, "{report:#?}");
}
