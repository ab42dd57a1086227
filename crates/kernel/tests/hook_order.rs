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

use live::{connect, multipath, skip, swallow};
use order::{Order, UNTOLD};
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

/// Everything that a flow can meet, one phase after the other; `up` is the direction of the data.
fn ordeal(network: &mut Network, up: Direction, stream: &TcpStream) {
    let running = AtomicBool::new(false);
    let sender = Sender { stream, running: &running };
    let mut set = |key: &str, value: &str, direction| {
        network.set("wan", direction, &[(key.into(), value.into())]).unwrap();
    };
    println!("  slow start into a short queue");
    sender.during(|| sleep(ms(1000)));
    println!("  2 % random loss");
    set("loss", "0.02", Some(up));
    sender.during(|| sleep(ms(2000)));
    println!("  silence of the link, for one timeout and for several, often in the midst of a recovery");
    for silence in [300, 300, 900] {
        sender.during(|| {
            set("loss", "0.06", Some(up));
            sleep(ms(300));
            set("loss", "1", None);
            sleep(ms(silence));
            set("loss", "0", None);
            set("loss", "0.02", Some(up));
            sleep(ms(800));
        });
    }
    println!("  40 % random loss, so that timeouts come while an earlier one is being repaired");
    set("loss", "0.4", Some(up));
    sender.during(|| {
        sleep(ms(2000));
        set("loss", "0", Some(up)); // or a long timeout would be waited for
    });
    println!("  lost tails: two packets arrive, the two behind them do not");
    sleep(ms(1200));
    stream.set_nodelay(true).unwrap(); // or ACKs would call for the half packets
    for _ in 0..4 {
        let mut stream = stream;
        stream.write_all(&[7; 2800]).unwrap();
        sleep(ms(6));
        set("loss", "1", Some(up));
        stream.write_all(&[7; 2800]).unwrap();
        sleep(ms(20));
        set("loss", "0", Some(up));
        sleep(ms(300));
    }
    println!("  delay jumps, so that timeouts are spurious");
    for _ in 0..2 {
        sender.during(|| {
            sleep(ms(800));
            set("delay", "500ms", Some(up));
            sleep(ms(1200));
            set("delay", "10ms", Some(up));
            sleep(ms(800));
        });
    }
    println!("  idle");
    for _ in 0..2 {
        sleep(ms(1200));
        sender.during(|| sleep(ms(200)));
    }
    sleep(ms(300));
}

/// A device queue that overflows: TCP then reduces its window in the state CWR. False if this machine has no `tc`.
fn short_device_queue(namespace: &str, verb: &str) -> bool {
    let shape: &[&str] = if verb == "del" { &[] } else { &["tbf", "rate", "15mbit", "burst", "3000", "limit", "6000"] };
    let done = Command::new("tc").args(["-n", namespace, "qdisc", verb, "dev", "p1", "root"]).args(shape).output();
    done.is_ok_and(|o| o.status.success())
}

/// A connection; `control` runs on the side that sends, the client's or the server's.
fn flow(
    network: &mut Network,
    up: Direction,
    protocol: Protocol,
    control: &str,
    script: impl FnOnce(&mut Network, &TcpStream),
) {
    let (sends, reads, _listener) = connect(network, protocol, up, control);
    let reader = thread::spawn(move || swallow(reads.into()));
    let sends = TcpStream::from(sends);
    script(network, &sends);
    drop(sends);
    println!("  {} bytes arrived", reader.join().unwrap());
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
    let of = |socket| records.iter().enumerate().filter(move |(_, r)| r.socket == socket);
    let before = |at: usize| of(records[at].socket).take_while(|&(i, _)| i < at).last();
    let start = (0..records.len()).find(|&at| {
        let r = &records[at];
        let told = before(at).is_some_and(|(_, b)| b.event() == Some(CaEvent::Loss));
        let old = if first { CaState::Open } else { CaState::Loss };
        r.new_state() == Some(CaState::Loss) && r.state() == old && told == first
    })?;
    let mut gone = vec![start];
    if first {
        let (event, _) = before(start)?;
        gone.extend([event, before(event)?.0]);
    }
    let after = of(records[start].socket).find(|&(i, _)| i > start)?;
    if after.1.event() == Some(CaEvent::TxStart) {
        gone.push(after.0);
    }
    Some(records.iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, r)| *r).collect())
}

#[test]
fn the_kernels_hooks_come_in_the_order_that_flow_h_promises() {
    let id = format!("k{}", std::process::id());
    let log = match HookLog::start(&format!("pc_h{}", std::process::id())) {
        Ok(log) => log,
        Err(error) => return skip(WHAT, &error),
    };
    let mut network = match Network::up(SCENARIO, &[], &id) {
        Ok(network) => network,
        Err(error) => return skip(WHAT, &*error),
    };
    for namespace in [network.describe().client, network.describe().server] {
        // the emulator switches it off
        inside(&namespace, || fs::write("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "1")).unwrap().unwrap();
    }
    let mut records = Vec::new();
    let control = log.name();
    println!("the client sends");
    flow(&mut network, Direction::Ab, Protocol::TCP, control, |n, s| ordeal(n, Direction::Ab, s));
    records.extend(log.records().unwrap());
    println!("the server sends");
    flow(&mut network, Direction::Ba, Protocol::TCP, control, |n, s| ordeal(n, Direction::Ba, s));
    println!("the client sends through a device queue that overflows");
    flow(&mut network, Direction::Ab, Protocol::TCP, control, |n, stream| {
        let client = n.describe().client;
        let running = AtomicBool::new(false);
        let shaped = short_device_queue(&client, "add");
        Sender { stream, running: &running }.during(|| sleep(ms(1500)));
        if !shaped || !short_device_queue(&client, "del") {
            println!("  not so: `tc` cannot make it here");
        }
    });
    if multipath() {
        for up in Direction::BOTH {
            println!("two subflows of an MPTCP connection, {up:?}");
            flow(&mut network, up, Protocol::MPTCP, control, |n, stream| {
                let running = AtomicBool::new(false);
                n.set("wan", Some(up), &[("loss".into(), "0.02".into())]).unwrap();
                Sender { stream, running: &running }.during(|| sleep(ms(1500)));
            });
        }
    }
    rest(&log, &mut records);

    let order = Order::of(&records);
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
