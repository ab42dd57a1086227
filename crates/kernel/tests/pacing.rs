//! Privileged: TCP paces a flow while its controller asks for it, and not for the rest of the flow's life.

mod live;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use live::{able, defaults, name, network, scenario, socket};
use pathcast_emu::inside;
use pathcast_kernel::Loaded;
use socket2::Protocol;

/// Bytes of the burst that is looked at, within the window of the flow.
const BURST: usize = 30 * 1448;
/// Between bursts.
const SILENCE: Duration = Duration::from_millis(200);

#[test]
fn after_a_train_the_flow_is_no_longer_paced() {
    let what = "pacing after a train";
    if !able(what) {
        return;
    }
    let name = name();
    let Some(network) = network(what, &name, &scenario(&[("1Gbit", "100ms")], "2000 packets")) else { return };
    let mut params = defaults("imtcp");
    params.set("initial_ssthresh_bytes", 60_000).unwrap(); // so that the window stays near the burst
    let loaded = Loaded::load(&name, &params, None).unwrap();
    let d = network.describe();
    let listener = inside(&d.server, || TcpListener::bind(SocketAddr::new(d.paths[0].remote, 0)).unwrap()).unwrap();
    let near = inside(&d.client, || {
        let near = socket(Protocol::TCP, Some(loaded.name()));
        near.connect(&listener.local_addr().unwrap().into()).unwrap();
        near
    })
    .unwrap();
    let (mut near, mut far) = (TcpStream::from(near), listener.accept().unwrap().0);
    near.set_nodelay(true).unwrap();
    // when bytes came, after a silence of 200 ms: each burst by itself
    let (tell, told) = channel();
    let reader = thread::spawn(move || {
        let (mut buffer, mut first, mut last, mut bytes) = (vec![0; 1 << 16], Instant::now(), Instant::now(), 0);
        far.set_read_timeout(Some(SILENCE)).unwrap();
        loop {
            let n = match far.read(&mut buffer) {
                Ok(0) => return,
                Ok(n) => n,
                Err(_) if bytes == 0 => continue,
                Err(_) => {
                    tell.send((last - first, bytes)).unwrap();
                    bytes = 0;
                    continue;
                }
            };
            last = Instant::now();
            if bytes == 0 {
                first = last;
            }
            bytes += n;
        }
    });
    let (start, mut calm) = (Instant::now(), None);
    // after the next train there is none for 20 s
    while calm.is_none_or(|calm: Instant| calm.elapsed() < Duration::from_millis(2500)) {
        assert!(start.elapsed() < Duration::from_secs(40), "no results: {:?}", loaded.flows());
        near.write_all(&[7; 16 << 10]).unwrap();
        if calm.is_none() && loaded.flows().unwrap().first().is_some_and(|flow| flow.words[1] > 0) {
            loaded.set(&[("pause", 100_000)]).unwrap();
            calm = Some(Instant::now());
        }
    }
    // a window takes half an RTT of 200 ms or more if it is paced; a busy machine has a minute for a burst in time
    let start = Instant::now();
    loop {
        sleep(Duration::from_millis(600)); // all is acked
        told.try_iter().for_each(drop);
        let flow = loaded.flows().unwrap().remove(0);
        near.write_all(&[7; BURST]).unwrap();
        let (took, bytes) = told.recv().unwrap();
        println!("{bytes} bytes at a window of {} packets came within {took:?}", flow.cwnd);
        if bytes == BURST && took < Duration::from_millis(20) {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no burst of {BURST} bytes at once");
    }
    drop(near);
    reader.join().unwrap();
}
