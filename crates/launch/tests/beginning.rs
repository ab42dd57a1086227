//! Privileged: a controller of pathcast's comes to a connection of plain TCP with the connection's first window, as it does
//! elsewhere.

mod common;

use std::io::Read;
use std::net::TcpListener;
use std::sync::mpsc;

use common::{SERVER, World, until};
use pathcast_congestion::{Params, controller};
use pathcast_kernel::{Loaded, ready};
use pathcast_launch::Launch;

#[test]
fn it_begins_when_the_connection_stands() {
    let Some(world) = World::new("first window") else { return };
    let Some(client) = world.client("first window") else { return };
    if let Err(error) = ready() {
        return println!("SKIPPED: first window: {error}");
    }
    let name = format!("pc_t{}", std::process::id());
    let loaded = Loaded::load(&name, &Params::new(controller("ledbatpp").unwrap()), None).unwrap();
    let launch = |port: &str| Launch {
        control: Some(name.clone()),
        ..world.launch("out", &[&client, "transfer", SERVER, port, "1"])
    };
    assert_eq!(world.run(launch("9")).unwrap().status, 1, "refused");
    assert_eq!(loaded.counts().unwrap().opened, 0, "what never stood is no flow");

    let (told, port) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let far = world.inside("s", move || {
        let listener = TcpListener::bind((SERVER, 0)).unwrap();
        told.send(listener.local_addr().unwrap().port()).unwrap();
        let mut connection = listener.accept().unwrap().0;
        connection.read_to_end(&mut Vec::new()).unwrap();
        let _ = ended.recv();
    });
    let launch = launch(&port.recv().unwrap().to_string());
    let run = world.inside("c", move || launch.run());
    let flow = until("a flow that was acked", || loaded.flows().unwrap().pop().filter(|flow| flow.bytes_acked > 1));
    // the byte and the end may have made two of it four
    assert!((2..=4).contains(&flow.cwnd) && flow.mss > 1400, "{flow:?}");
    drop(end);
    far.join().unwrap();
    let report = run.join().unwrap().unwrap().report;
    assert_eq!((report.connections, report.paths[0].control.as_str()), (1, name.as_str()));
    until("its end", || (loaded.counts().unwrap().closed == 1).then_some(()));
    loaded.unload().unwrap();
}
