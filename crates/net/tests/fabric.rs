//! Several subflows between one pair of addresses, each over the path that its port at the client decides. Needs root;
//! skipped with a reason otherwise.

mod common;

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::netns::{Deaf, Net, noise, sweep};
use common::{acked, client, config, looking, over, path, plain, slow_until_joined};
use pathcast_base::{Fault, Nanos, PathAddr, Protocol};
use pathcast_measure::machine::{Action, Event, Machine};
use pathcast_net::udp::{DriveOptions, drive};
use pathcast_net::{
    Fabric, Family, FlowEnds, Keeper, PathManagerLimits, Progress, Server, SocketMaker, TransferOptions, Transport,
    set_limits,
};
use socket2::Socket;

/// Policy routing in place of switches: what comes from a flow's port leaves by the device of its path.
struct Rules {
    net: Arc<Net>,
    /// Of flows over this path nothing is known.
    deaf: &'static str,
    /// The port of the first flow over this path is taken by somebody else in the last moment.
    robbed: &'static str,
    told: Mutex<Vec<(FlowEnds, String)>>,
    ended: Mutex<Vec<FlowEnds>>,
    robber: Mutex<Option<TcpListener>>,
}

impl Rules {
    fn new(net: &Arc<Net>) -> Rules {
        let (told, ended, robber) = Default::default();
        Rules { net: net.clone(), deaf: "", robbed: "", told, ended, robber }
    }
    fn rule(&self, verb: &str, flow: FlowEnds, table: &str) -> bool {
        let FlowEnds { local, transport, .. } = flow;
        self.net.ip(
            "c",
            &format!(
                "rule {verb} from {} ipproto {} sport {} table {table}",
                local.ip(),
                transport.name(),
                local.port()
            ),
        )
    }
    fn count(&self) -> (usize, usize) {
        (self.told.lock().unwrap().len(), self.ended.lock().unwrap().len())
    }
}

impl Fabric for Rules {
    fn begin(&self, flow: FlowEnds, path: &str) -> Result<(), String> {
        if path == self.deaf {
            return Err("its table is full".into());
        }
        let mut robber = self.robber.lock().unwrap();
        if path == self.robbed && robber.is_none() {
            let mut taken = None;
            self.net.client().run(&mut || taken = Some(listener(flow.local))).unwrap();
            *robber = taken;
        }
        assert!(self.rule("add", flow, &path[1..]));
        self.told.lock().unwrap().push((flow, path.into()));
        Ok(())
    }
    fn end(&self, flow: FlowEnds) {
        let table = self.told.lock().unwrap().iter().find(|(of, _)| *of == flow).unwrap().1[1..].to_owned();
        assert!(self.rule("del", flow, &table));
        self.ended.lock().unwrap().push(flow);
    }
}

/// A child that another test has just begotten may hold the port for the moment until its `exec`.
fn listener(local: SocketAddr) -> TcpListener {
    let begun = Instant::now();
    loop {
        match TcpListener::bind(local) {
            Err(e) if e.kind() == ErrorKind::AddrInUse && begun.elapsed() < Duration::from_secs(10) => {
                sleep(Duration::from_millis(1));
            }
            done => return done.unwrap(),
        }
    }
}

/// Two paths that are the same pair of addresses; at the client each has a device of its own.
fn pair() -> [PathAddr; 2] {
    ["p1", "p2"].map(|name| path(name, "10.7.1.1", "10.7.3.1"))
}

fn shape(net: &Net, rate: &str) {
    for device in ["c1", "c2"] {
        net.tc("c", &format!("qdisc replace dev {device} root tbf rate {rate} burst 20kb limit 200kb"));
    }
}

fn network(name: &str) -> Option<(Arc<Net>, Server)> {
    sweep();
    let net = Net::new(name)?;
    shape(&net, "40mbit");
    let server = Server::start(net.server(), config(&["0.0.0.0:5270"])).unwrap();
    Some((Arc::new(net), server))
}

fn sent_by(net: &Net, device: &str) -> u64 {
    let mut text = String::new();
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    net.client().run(&mut || text = read()).unwrap();
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(device)?.strip_prefix(':')).unwrap();
    line.split_whitespace().nth(8).unwrap().parse().unwrap()
}

fn through<'a>(rules: &Arc<Rules>) -> TransferOptions<'a> {
    TransferOptions { fabric: Some(rules.clone()), ..plain() }
}

#[test]
fn subflows_of_one_pair_take_the_paths_that_the_fabric_was_told() {
    let Some((net, server)) = network("subflows_of_one_pair") else { return };
    let (rules, client) = (Arc::new(Rules::new(&net)), client(&net.client(), &server, "10.7.3.1"));
    let both = pair();
    assert!(client.mptcp_transfer(&both, 1000, &mut plain()).unwrap_err().to_string().contains("same pair"));
    let before = ["c1", "c2"].map(|device| sent_by(&net, device));
    // `plain: false`: backups, too, are told apart by their ports
    for steered in [false, true] {
        shape(&net, "40mbit");
        let mut joined = false;
        let mut quick = |p: &Progress<'_>| {
            if !joined && ["p1", "p2"].iter().all(|name| acked(p, name) > 3_000_000) {
                shape(&net, "1gbit"); // there is enough until then, and no more to wait for
                joined = true;
            }
        };
        let mut options = TransferOptions { plain: !steered, on_sample: Some(&mut quick), ..through(&rules) };
        let report = client.mptcp_transfer(&both, 40_000_000, &mut options).unwrap();
        for name in ["p1", "p2"] {
            let flow = over(&report, name);
            assert!(flow.joined_s.is_some() && flow.bytes_acked > 2_000_000, "{report:#?}");
            let told = rules.told.lock().unwrap();
            let of = |t: &&(FlowEnds, String)| t.0.local.port() == flow.local_port;
            assert_eq!(told.iter().find(of).map(|t| t.1.as_str()), Some(name));
        }
    }
    let after = ["c1", "c2"].map(|device| sent_by(&net, device));
    assert!(before.iter().zip(&after).all(|(before, after)| after - before > 5_000_000), "{before:?} {after:?}");
    assert_eq!(rules.count(), (4, 4), "every flow is ended");
    let one = client.tcp_transfer(&both[1], 1_000_000, &mut through(&rules)).unwrap();
    assert!(over(&one, "p2").bytes_acked > 900_000, "{one:#?}");
    assert!(sent_by(&net, "c2") - after[1] > 900_000);
    assert_eq!(rules.count(), (5, 5));
}

/// A script of one datagram a path.
struct Once(usize);

impl Machine for Once {
    fn handle(&mut self, _: Nanos, event: Event<'_>) {
        self.0 += usize::from(matches!(event, Event::Started));
    }
    fn next(&mut self, _: Nanos) -> Option<Action> {
        (self.0 == 1).then(|| {
            self.0 = 2;
            Action::Done(Vec::new())
        })
    }
}

#[test]
fn probes_too_are_told_with_their_ports() {
    let Some((net, _server)) = network("probes_too_are_told") else { return };
    let rules = Arc::new(Rules::new(&net));
    let options = DriveOptions { urgent: false, fabric: Some(rules.clone()), ..DriveOptions::default() };
    drive(&*net.client(), &pair(), 5275, &mut Once(0), options).unwrap();
    // two sockets a path
    assert_eq!(rules.count(), (4, 4));
    let told = rules.told.lock().unwrap();
    let ports: std::collections::BTreeSet<u16> = told.iter().map(|(flow, _)| flow.local.port()).collect();
    assert!(ports.len() == 4 && told.iter().all(|(flow, _)| flow.transport == Transport::Udp), "{told:?}");
    assert_eq!(told.iter().map(|(_, path)| path.as_str()).collect::<Vec<_>>(), ["p1", "p2", "p1", "p2"]);
}

#[test]
fn a_fabric_that_says_no_and_a_port_that_is_taken() {
    let Some((net, server)) = network("a_fabric_that_says_no") else { return };
    let client = client(&net.client(), &server, "10.7.3.1");
    let rules = Arc::new(Rules { deaf: "p2", ..Rules::new(&net) });
    let report = client.mptcp_transfer(&pair(), 1_000_000, &mut through(&rules)).unwrap();
    let note = over(&report, "p2").note.clone().unwrap();
    assert!(over(&report, "p1").alive && note.contains("its table is full"), "{report:#?}");
    let rules = Arc::new(Rules { deaf: "p1", ..Rules::new(&net) });
    let error = client.mptcp_transfer(&pair(), 1_000_000, &mut through(&rules)).unwrap_err();
    assert_eq!((error.code(), rules.count()), ("switch", (0, 0)), "{error}");

    let rules = Arc::new(Rules { robbed: "p2", ..Rules::new(&net) });
    let mut slow = slow_until_joined(&["p2"]);
    let mut options = TransferOptions { fabric: Some(rules.clone()), ..looking(&mut slow) };
    let report = client.mptcp_transfer(&pair(), 10_000_000, &mut options).unwrap();
    let taken = rules.robber.lock().unwrap().as_ref().unwrap().local_addr().unwrap().port();
    let flow = over(&report, "p2");
    assert!(flow.joined_s.is_some() && flow.local_port != taken, "{report:#?}");
    assert_eq!(rules.count(), (3, 3));
}

/// What failed is asked for again 5 s later.
#[test]
fn a_subflow_that_stands_on_its_second_port_is_left_alone() {
    let Some((net, server)) = network("that_stands_on_its_second_port") else { return };
    let client = client(&net.client(), &server, "10.7.3.1");
    let rules = Arc::new(Rules { robbed: "p2", ..Rules::new(&net) });
    let until = Some(Instant::now() + Duration::from_secs(9));
    let report = client.mptcp_transfer(&pair(), 1 << 30, &mut TransferOptions { until, ..through(&rules) }).unwrap();
    let second = report.subflows.iter().filter(|flow| flow.path.as_deref() == Some("p2"));
    assert_eq!(second.map(|flow| flow.alive).collect::<Vec<_>>(), [true], "{report:#?}");
    assert_eq!(rules.count(), (3, 3));
}

/// Counts the flows, and those that begin with the port of another one.
#[derive(Default)]
struct Ports {
    now: Mutex<Vec<u16>>,
    begun: AtomicUsize,
    same: AtomicUsize,
}

impl Fabric for Ports {
    fn begin(&self, flow: FlowEnds, _: &str) -> Result<(), String> {
        let (mut now, port) = (self.now.lock().unwrap(), flow.local.port());
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.same.fetch_add(usize::from(now.contains(&port)), Ordering::Relaxed);
        now.push(port);
        Ok(())
    }
    fn end(&self, flow: FlowEnds) {
        let mut now = self.now.lock().unwrap();
        let at = now.iter().position(|&port| port == flow.local.port()).expect("it has begun");
        now.swap_remove(at);
    }
}

/// A port that was chosen for one flow is free until that flow begins.
#[test]
fn two_flows_of_one_pair_are_never_given_the_same_port() {
    let Some((net, server)) = network("two_flows_of_one_pair") else { return };
    let client = client(&net.client(), &server, "10.7.3.1");
    net.client().set_sysctl("ipv4/ip_local_port_range", "40000 40063").unwrap();
    net.client().set_sysctl("ipv4/tcp_max_tw_buckets", "0").unwrap(); // or what has ended keeps its port
    let ports = Arc::new(Ports::default());
    for _ in 0..100 {
        let until = Some(Instant::now()); // the ports are chosen, and there is no time to connect
        let mut options = TransferOptions { fabric: Some(ports.clone()), until, ..plain() };
        client.mptcp_transfer(&pair(), 1000, &mut options).unwrap_err();
    }
    let [begun, same] = [&ports.begun, &ports.same].map(|n| n.load(Ordering::Relaxed));
    assert!(begun > 200 && same == 0, "{same} of {begun}");
}

/// A program's connection, of which the keeper is told before it begins: both its ends, and the listener, that joins come to.
fn program(net: &Net, keeper: &mut Keeper) -> [Socket; 3] {
    let maker = net.client();
    let listening = net.server().tcp(Family::V4, Protocol::Mptcp).unwrap();
    let remote = SocketAddr::from(([10, 7, 3, 1], 5271));
    listening.bind(&remote.into()).unwrap();
    listening.listen(1).unwrap();
    maker.set_mptcp_sysctl("pm_type", "1").unwrap(); // the one in user space
    let socket = maker.tcp(Family::V4, Protocol::Mptcp).unwrap();
    socket.bind(&SocketAddr::from(([10, 7, 1, 1], 0)).into()).unwrap();
    keeper.begins(socket.local_addr().unwrap().as_socket().unwrap(), remote);
    socket.connect(&remote.into()).unwrap();
    let accepted = listening.accept().unwrap().0;
    // a subflow may join when data has come
    for (from, to) in [(&socket, &accepted), (&accepted, &socket)] {
        from.send(&[1]).unwrap();
        to.recv(&mut [MaybeUninit::uninit()]).unwrap();
    }
    [socket, accepted, listening]
}

fn keeper(maker: Arc<dyn SocketMaker>, rules: &Arc<Rules>) -> Keeper {
    Keeper::new(maker, rules.clone(), &["p1", "p2"].map(str::to_owned)).unwrap()
}

/// The keeper hears neither that a connection stands nor that it has ended.
#[test]
fn a_programs_connection_has_its_subflows_also_where_events_were_lost() {
    let Some((net, _server)) = network("also_where_events_were_lost") else { return };
    let rules = Arc::new(Rules::new(&net));
    let mut keeper = keeper(Arc::new(Deaf(net.client())), &rules);
    let sockets = program(&net, &mut keeper);
    let mut look = || {
        noise(&net, 30);
        keeper.look(Instant::now(), |_, _| false).unwrap();
        (keeper.kept()[0].subflows, rules.count())
    };
    let asked = || rules.told.lock().unwrap().iter().find(|(_, path)| path == "p2").map(|(flow, _)| flow.local.port());
    wait_for(|| look() == (1, (2, 0)) && asked().is_some_and(|port| stands(&net, port)));
    noise(&net, 30);
    drop(sockets);
    wait_for(|| look() == (1, (2, 2)));
    assert!(keeper.kept().iter().all(|path| path.failed.is_none()), "it has ended: {:?}", keeper.kept());
}

#[test]
fn a_subflow_that_a_programs_far_end_closes_is_told_and_asked_for_again() {
    let Some((net, _server)) = network("a_subflow_that_a_programs_far_end_closes") else { return };
    set_limits(&*net.server(), PathManagerLimits { subflows: 0, add_addr_accepted: 0 }).unwrap();
    let rules = Arc::new(Rules::new(&net));
    let mut keeper = keeper(net.client(), &rules);
    let _sockets = program(&net, &mut keeper);
    let asked = || rules.told.lock().unwrap().iter().filter(|(_, path)| path == "p2").count();
    wait_for(|| {
        keeper.look(Instant::now() + Duration::from_millis(20), |_, _| false).unwrap();
        asked() > 1
    });
    let failed = keeper.kept()[1].failed.clone().unwrap_or_default();
    assert!(failed.contains("limits set subflows 8"), "{:?}", keeper.kept());
}

/// Whether the client has an established connection from this port.
fn stands(net: &Net, port: u16) -> bool {
    let mut table = String::new();
    let read = || std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
    net.client().run(&mut || table = read()).unwrap();
    let of = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        Some(words.next()?.ends_with(&format!(":{port:04X}")) && words.nth(1)? == "01")
    };
    table.lines().any(|line| of(line) == Some(true))
}

fn wait_for(mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
    }
}
