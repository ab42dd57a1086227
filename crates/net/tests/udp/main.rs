//! Measuring over UDP, on loopback and in namespaces. Nothing here says how exactly packets leave: that is the example
//! `train_gaps`, by hand.

#[path = "../common/mod.rs"]
mod common;
mod far;
mod hostile;
mod machines;
mod measure;
mod namespaces;
mod stamp;
mod trains;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use machines::{Echo, Script};
use pathcast_base::Nanos;
use pathcast_measure::machine::Train;
use pathcast_net::udp::{DriveOptions, Driven, FarMachine, FarOptions, FarServer, SessionClock, drive};
use pathcast_net::{HostSockets, PathAddr, SocketMaker};

fn host() -> Arc<dyn SocketMaker> {
    Arc::new(HostSockets)
}

fn serve<F: FarMachine + 'static>(maker: &dyn SocketMaker, listen: &[&str], far: F) -> FarServer<F> {
    let listen = listen.iter().map(|a| a.parse().unwrap()).collect();
    let options = FarOptions { listen, clock: SessionClock::start(), urgent: false };
    FarServer::start(maker, options, far).unwrap()
}

fn port(server: &FarServer<Echo>) -> u16 {
    server.local_addrs()[0].port()
}

fn plain<'a>() -> DriveOptions<'a> {
    DriveOptions { urgent: false, ..DriveOptions::default() }
}

fn run(maker: &dyn SocketMaker, paths: &[PathAddr], port: u16, script: &mut Script) -> Driven {
    drive(maker, paths, port, script, plain()).unwrap()
}

/// Until neighbours know each other, which takes IPv6 a second, packets wait in the host; and until a worker of the kernel's has run,
/// whom a busy machine lets wait, none is stamped. How many were sent on each path.
fn introduce(maker: &dyn SocketMaker, paths: &[PathAddr], port: u16) -> usize {
    let stamped = |_: &usize| {
        let trains = (0..paths.len()).map(|p| echoes(p, 1, Nanos::ZERO, 100)).collect();
        let tally = run(maker, paths, port, &mut Script::new(trains, paths.len())).tally;
        tally.received_stamped == tally.received
    };
    let begun = Instant::now();
    let waits = |tries: &usize| {
        // a hundred tries are over in less than a second, for which a busy machine's worker may wait
        std::thread::sleep(Duration::from_millis(if *tries > 1 { 10 } else { 0 }));
        begun.elapsed() < Duration::from_secs(60)
    };
    (1..).take_while(waits).find(stamped).expect("the kernel stamps what arrives")
}

fn path(local: &str, remote: &str) -> PathAddr {
    common::path("path", local, remote)
}

/// A train that is answered packet by packet.
fn echoes(path: usize, count: usize, gap: Nanos, size: u16) -> Train {
    Train::even(path, 1000 * path as u64, Nanos::millis(1), count, gap, size).with_heads(12, |seq, head| {
        head[..4].copy_from_slice(b"echo");
        head[4..].copy_from_slice(&seq.to_be_bytes());
    })
}

/// The number and the far end's stamp in an answer.
fn answer(payload: &[u8]) -> (u64, Nanos) {
    let number = |at: usize| u64::from_be_bytes(payload[at..at + 8].try_into().unwrap());
    (number(4), Nanos(number(12)))
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}
