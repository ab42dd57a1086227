//! Privileged: the order of the kernel's congestion-control hooks on flows that meet everything, against `flow.h`.

mod live;
mod order;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use live::{connect, multipath, name, skip, swallow};
use order::{Order, UNTOLD};
use pathcast_base::Fault;
use pathcast_emu::{Network, inside};
use pathcast_kernel::{CaEvent, CaState, Hook, HookLog, Record};
use pathcast_scenario::Direction;
use socket2::Protocol;

const SCENARIO: &str = "name = \"hooks\"
[[link]]
name = \"wan\"
a = \"client\"
b = \"server\"
rate = \"20Mbit\"
delay = \"10ms\"
queue = \"20 packets\"
[[link]]
name = \"lan\"
a = \"client\"
b = \"server\"
rate = \"5Mbit\"
delay = \"20ms\"
queue = \"20 packets\"
[[path]]
name = \"path1\"
links = [\"wan\"]
[[path]]
name = \"path2\"
links = [\"lan\"]
";

const WHAT: &str = "order of the kernel's hooks";

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sends to a peer that reads all, while `script` changes the link; what it writes goes through a small buffer.
struct Sender<'a> {
    stream: &'a TcpStream,
    running: &'a AtomicBool,
}

impl Sender<'_> {
    /// Sends without pause for as long as `script` runs.
    fn during(&self, script: impl FnOnce()) {
        self.running.store(true, Ordering::SeqCst);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let data = [7u8; 16 << 10];
                let mut stream = self.stream;
                while self.running.load(Ordering::SeqCst) {
                    stream.write_all(&data).expect("the peer reads until the end");
                }
            });
            script();
            self.running.store(false, Ordering::SeqCst);
            writer.join().unwrap();
        });
    }
}

/// A change of the first link.
fn set(network: &mut Network, key: &str, value: &str, direction: Option<Direction>) {
    network.set("wan", direction, &[(key.into(), value.into())]).unwrap();
}

/// Losses of every kind, one phase after the other; `up` is the direction of the data.
fn losses(network: &mut Network, up: Direction, stream: &TcpStream) {
    let running = AtomicBool::new(false);
    let sender = Sender { stream, running: &running };
    // slow start into a short queue
    sender.during(|| sleep(ms(1000)));
    set(network, "loss", "0.02", Some(up));
    sender.during(|| sleep(ms(2000)));
    // silence of the link, for one timeout and for several, often in the midst of a recovery
    for silence in [300, 300, 900] {
        sender.during(|| {
            set(network, "loss", "0.06", Some(up));
            sleep(ms(300));
            set(network, "loss", "1", None);
            sleep(ms(silence));
            set(network, "loss", "0", None);
            set(network, "loss", "0.02", Some(up));
            sleep(ms(800));
        });
    }
    // so much random loss that timeouts come while an earlier one is being repaired
    set(network, "loss", "0.4", Some(up));
    sender.during(|| {
        sleep(ms(2000));
        set(network, "loss", "0", Some(up)); // or a long timeout would be waited for
    });
}

/// Lost tails, timeouts that are spurious, and idle times.
fn waits(network: &mut Network, up: Direction, stream: &TcpStream) {
    let running = AtomicBool::new(false);
    let sender = Sender { stream, running: &running };
    stream.set_nodelay(true).unwrap(); // or ACKs would call for the half packets
    // two packets arrive, the two behind them do not
    for _ in 0..4 {
        let mut stream = stream;
        stream.write_all(&[7; 2800]).unwrap();
        sleep(ms(6));
        set(network, "loss", "1", Some(up));
        stream.write_all(&[7; 2800]).unwrap();
        sleep(ms(20));
        set(network, "loss", "0", Some(up));
        sleep(ms(300));
    }
    // delay jumps
    for _ in 0..2 {
        sender.during(|| {
            sleep(ms(800));
            set(network, "delay", "500ms", Some(up));
            sleep(ms(1200));
            set(network, "delay", "10ms", Some(up));
            sleep(ms(800));
        });
    }
    for _ in 0..2 {
        sleep(ms(1200));
        sender.during(|| sleep(ms(200)));
    }
    sleep(ms(300));
}

/// Through a queue of the client's device that overflows.
fn device_queue(network: &mut Network, _: Direction, stream: &TcpStream) {
    let client = network.describe().client;
    let running = AtomicBool::new(false);
    let shaped = short_device_queue(&client, "add");
    Sender { stream, running: &running }.during(|| sleep(ms(1500)));
    if !shaped || !short_device_queue(&client, "del") {
        println!("no device queue overflows: `tc` cannot make it here");
    }
}

/// Over two subflows.
fn subflows(network: &mut Network, up: Direction, stream: &TcpStream) {
    let running = AtomicBool::new(false);
    set(network, "loss", "0.02", Some(up));
    Sender { stream, running: &running }.during(|| sleep(ms(1500)));
}

type Script = fn(&mut Network, Direction, &TcpStream);

/// What flows meet, each in a network of its own.
const FLOWS: [(&str, Script, Direction, Protocol); 7] = [
    ("losses, the client sends", losses, Direction::Ab, Protocol::TCP),
    ("losses, the server sends", losses, Direction::Ba, Protocol::TCP),
    ("waits, the client sends", waits, Direction::Ab, Protocol::TCP),
    ("waits, the server sends", waits, Direction::Ba, Protocol::TCP),
    ("a device queue that overflows", device_queue, Direction::Ab, Protocol::TCP),
    ("two subflows, the client sends", subflows, Direction::Ab, Protocol::MPTCP),
    ("two subflows, the server sends", subflows, Direction::Ba, Protocol::MPTCP),
];

/// A device queue that overflows: TCP then reduces its window in the state CWR. False if this machine has no `tc`.
fn short_device_queue(namespace: &str, verb: &str) -> bool {
    let shape: &[&str] = if verb == "del" { &[] } else { &["tbf", "rate", "15mbit", "burst", "3000", "limit", "6000"] };
    let done = Command::new("tc").args(["-n", namespace, "qdisc", verb, "dev", "p1", "root"]).args(shape).output();
    done.is_ok_and(|o| o.status.success())
}

/// A connection; `control` runs on the side that sends, the client's or the server's. The bytes that arrived.
fn flow(network: &mut Network, up: Direction, protocol: Protocol, control: &str, script: Script) -> u64 {
    let (sends, reads, _listener) = connect(network, protocol, up, control);
    let reader = thread::spawn(move || swallow(reads.into()));
    let sends = TcpStream::from(sends);
    script(network, up, &sends);
    drop(sends);
    reader.join().unwrap()
}

/// All flows at once, while the log is read.
fn flows(log: &HookLog, records: &mut Vec<Record>) -> Result<(), Box<dyn Fault + Send + Sync>> {
    let control = log.name();
    let of_kernel = |(_, _, _, protocol): &&(_, _, _, Protocol)| *protocol == Protocol::TCP || multipath();
    thread::scope(|scope| {
        let runs: Vec<_> = FLOWS
            .iter()
            .filter(of_kernel)
            .map(|&(what, script, up, protocol)| {
                scope.spawn(move || {
                    let mut network = Network::up(SCENARIO, &[], &name())?;
                    for namespace in [network.describe().client, network.describe().server] {
                        // the emulator switches it off
                        let key = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
                        inside(&namespace, || fs::write(key, "1")).unwrap().unwrap();
                    }
                    let bytes = flow(&mut network, up, protocol, control, script);
                    println!("{what}: {bytes} bytes arrived");
                    Ok(network)
                })
            })
            .collect();
        while runs.iter().any(|run| !run.is_finished()) {
            records.extend(log.records().unwrap());
            sleep(ms(20));
        }
        // the networks stay until the sockets have ended
        let networks = runs.into_iter().map(|run| run.join().unwrap()).collect::<Result<Vec<_>, _>>()?;
        rest(log, records);
        drop(networks);
        Ok(())
    })
}

/// Reads the log until every socket in it is released, but not for ever.
fn rest(log: &HookLog, records: &mut Vec<Record>) {
    let start = Instant::now();
    loop {
        records.extend(log.records().unwrap());
        let count = |hook| records.iter().filter(|r| r.hook() == hook).count();
        if count(Hook::Release) >= count(Hook::Init) || start.elapsed() > Duration::from_secs(10) {
            return;
        }
        sleep(ms(100));
    }
}

/// What must have been seen, or the test has shown nothing.
const NEEDED: [&str; 21] = [
    "init, active",
    "init, passive",
    "grow in slow start",
    "grow in congestion avoidance",
    "grow in Open",
    "grow in Disorder",
    "grow in Loss",
    "grow not in CWR or Recovery",
    "set_state(Recovery) from Disorder after ssthresh",
    "RECOVERED: cwnd = ssthresh",
    "RECOVERED in Open",
    "TIMEOUT: right after ssthresh, which is set",
    "timeout in Loss, not told by ssthresh and TIMEOUT",
    "TX_START in Open, nothing is out",
    "TX_START in Loss, all that is out counts as lost",
    "packets sent after send, new",
    "packets sent after send, retransmitted",
    "packets sent without send, retransmitted, the first of a timeout",
    "ssthresh on an ACK, after ack",
    "ssthresh at a timer, or while sending",
    "release is the last call",
];
/// What hangs on chance, or on the machine.
const HOPED: [&str; 6] = [
    "packets sent without send, retransmitted, a probe of the tail",
    "undo only after a reduction",
    "IDLE, then TX_START with nothing but send between",
    "set_state(Cwr) from Open after ssthresh",
    "timeout in Recovery, not told by ssthresh and TIMEOUT",
    "init of an MPTCP subflow",
];

/// The log without one timeout's calls: what a kernel gives that leaves them out. The first timeout of a loss comes with
/// `ssthresh`, a later one without.
fn without_a_timeout(records: &[Record], first: bool) -> Option<Vec<Record>> {
    let before = |at: usize| records[..at].iter().rposition(|r| r.socket == records[at].socket);
    let old = if first { CaState::Open } else { CaState::Loss };
    let told = |at| before(at).is_some_and(|at| records[at].event() == Some(CaEvent::Loss));
    let start = (0..records.len()).find(|&at| {
        let r = &records[at];
        r.new_state() == Some(CaState::Loss) && r.state() == old && told(at) == first
    })?;
    let mut gone = vec![start];
    if first {
        let event = before(start)?;
        gone.extend([event, before(event)?]);
    }
    let after = start + 1 + records[start + 1..].iter().position(|r| r.socket == records[start].socket)?;
    if records[after].event() == Some(CaEvent::TxStart) {
        gone.push(after);
    }
    Some(records.iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, r)| *r).collect())
}

#[test]
fn the_kernels_hooks_come_in_the_order_that_flow_h_promises() {
    let log = match HookLog::start(&name()) {
        Ok(log) => log,
        Err(error) => return skip(WHAT, &error),
    };
    let (mut records, start) = (Vec::new(), Instant::now());
    let order = loop {
        if let Err(error) = flows(&log, &mut records) {
            return skip(WHAT, &*error);
        }
        let order = Order::of(&records);
        // what some flows meet hangs on which packets are lost
        let all = NEEDED.iter().all(|what| order.times(what) > 0)
            && [true, false].iter().all(|&first| without_a_timeout(&records, first).is_some());
        if all || !order.broken.is_empty() || start.elapsed() > Duration::from_secs(60) {
            break order;
        }
    };
    println!("{} records, {} lost", records.len(), log.lost().unwrap());
    for (what, times) in &order.seen {
        println!("{times:>8}  {what}");
    }
    for broken in order.broken.iter().take(12) {
        println!("{broken}");
    }
    for what in HOPED.iter().filter(|what| order.times(what) == 0) {
        println!("not seen this time: {what}");
    }
    assert_eq!(log.lost().unwrap(), 0, "the log has holes");
    assert!(order.broken.is_empty(), "{} broken rules", order.broken.len());
    for what in NEEDED {
        assert!(order.times(what) > 0, "never seen: {what}");
    }
    // a timeout of which no hook told is seen as such, be it the first or one in Loss
    for first in [true, false] {
        let Some(partial) = without_a_timeout(&records, first) else { panic!("no timeout of a kind: first {first}") };
        let less = Order::of(&partial);
        assert!(less.broken.is_empty(), "first {first}: {:#?}", less.broken);
        assert_eq!(less.times(UNTOLD), order.times(UNTOLD) + 1, "first {first}");
    }
    // the rules can break: they do in a log that lacks a hook
    for hook in [Hook::Ack, Hook::Ssthresh, Hook::Send, Hook::State] {
        let partial: Vec<Record> = records.iter().filter(|r| r.hook() != hook).copied().collect();
        assert!(!Order::of(&partial).broken.is_empty(), "nobody misses {hook:?}");
    }
}
