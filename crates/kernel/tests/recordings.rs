//! Privileged: every call of a live flow's controller in the kernel, replayed natively, gives the same to the byte. Over
//! emulated paths with random loss and a stop of a second; TCP, and MPTCP with two and with five subflows.

mod bits;
mod live;
mod microseconds;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bits::{ACK, Call, EVENT, GROW, INIT, RELEASE, SEND, SSTHRESH, TestBuild, UNDO, native};
use libbpf_rs::{Link, MapCore, RingBuffer};
use live::{Bulk, able, multipath, name, network, scenario, set};
use pathcast_congestion::{Event, Info, Instance, Params};
use pathcast_emu::Network;
use pathcast_kernel::controllers_in_kernel;
use pathcast_scenario::Direction;
use socket2::Protocol;

/// Place of `lost` in the counts of `bpf/socket.h`.
const LOST: usize = 8;

/// A controller's test build in the kernel, and what its flows have recorded.
struct Recorder {
    // the ring and the link go before the object
    ring: RingBuffer<'static>,
    _link: Link,
    build: TestBuild,
    raw: Rc<RefCell<Vec<Vec<u8>>>>,
    info: &'static Info,
    name: String,
}

impl Recorder {
    fn start(info: &'static Info, name: String) -> Recorder {
        let mut build = TestBuild::load(&Params::new(info), &name);
        let raw = Rc::new(RefCell::new(Vec::new()));
        let sink = raw.clone();
        // to be read later: the ring waits for nobody
        let ring = build.ring(move |bytes| sink.borrow_mut().push(bytes.to_vec()));
        let link = build.attach();
        Recorder { ring, _link: link, build, raw, info, name }
    }

    fn count(&self, hook: u32) -> usize {
        self.raw.borrow().iter().filter(|bytes| Call::hook(bytes) == hook).count()
    }

    /// All that came; the recording has no holes if [`LOST`] counts none.
    fn calls(&self) -> Vec<Call> {
        self.raw.borrow().iter().map(|bytes| self.build.call(bytes)).collect()
    }

    /// Calls that the native controller answers otherwise; each socket has a controller of its own, from its `init` on.
    fn replay(calls: &[Call], params: &Params) -> (usize, Option<String>) {
        let mut instances = BTreeMap::new();
        let (mut differences, mut first) = (0, None);
        for (at, call) in calls.iter().enumerate() {
            if call.hook == INIT {
                instances.insert(call.socket, Instance::new(params));
            }
            let instance = instances.get_mut(&call.socket).expect("nothing comes before init");
            let mut flow = call.before;
            let ours = native(instance, call.hook, call.event, &mut flow, &call.ack);
            if ours != call.after {
                differences += 1;
                first.get_or_insert_with(|| format!("call {at}: {call:?}\n natively {ours:?}"));
            }
        }
        (differences, first)
    }

    /// How often a sibling was seen in a view, each time as it had reported itself once; else what was not.
    fn siblings(calls: &[Call]) -> Result<usize, String> {
        let mut reports: BTreeMap<u32, BTreeSet<[u32; 4]>> = BTreeMap::new();
        for call in calls {
            let flow = &call.before;
            let id = flow.group.peer[flow.slot as usize].id;
            let reported = reports.entry(id).or_default();
            // a timeout tells the window that it leaves
            let timeout = call.hook == EVENT && call.event == Event::Timeout as u32;
            let cwnd = if timeout { flow.in_flight + 1 } else { flow.cwnd };
            reported.insert([cwnd, flow.ssthresh, flow.srtt_us, flow.in_flight]);
            if let (INIT, Some([cwnd, _, ssthresh, ..])) = (call.hook, call.after.window) {
                reported.insert([cwnd, ssthresh, flow.srtt_us, flow.in_flight]);
            }
        }
        let mut seen = 0;
        for call in calls {
            let flow = &call.before;
            let used = flow.group.peer.iter().enumerate().filter(|(_, peer)| peer.used == 1);
            for (slot, peer) in used.clone() {
                let report = [peer.cwnd, peer.ssthresh, peer.srtt_us, peer.in_flight];
                let own = slot == flow.slot as usize;
                let now = [flow.cwnd, flow.ssthresh, flow.srtt_us, flow.in_flight];
                let fresh = !own || !matches!(call.hook, INIT | GROW | SSTHRESH) || report == now;
                if !fresh || !reports.get(&peer.id).is_some_and(|reports| reports.contains(&report)) {
                    return Err(format!("slot {slot} was never {peer:?}: {call:?}"));
                }
                seen += usize::from(!own);
            }
            if used.count() != flow.group.n as usize || flow.group.joins < flow.group.n {
                return Err(format!("the group does not add up: {call:?}"));
            }
        }
        Ok(seen)
    }

    /// Entries that are left in a map.
    fn left(&self, map: &str) -> usize {
        self.build.object.maps().find(|m| m.name() == map).map_or(0, |map| map.keys().count())
    }
}

/// Reads the rings for a while.
fn during(recorders: &[Recorder], ms: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(ms) {
        for recorder in recorders {
            recorder.ring.consume().unwrap();
        }
        sleep(Duration::from_millis(5));
    }
}

/// What the recordings were of.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<String, usize>>);

impl Seen {
    fn see(&self, what: impl Into<String>, n: usize) {
        *self.0.lock().unwrap().entry(what.into()).or_default() += n;
    }
}

/// Flows of these controllers together, over all paths; the bytes of each.
fn run(
    network: &mut Network,
    paths: usize,
    kind: (Protocol, Direction),
    infos: &[&'static Info],
) -> Vec<(Recorder, u64)> {
    let recorders: Vec<_> = infos.iter().map(|info| Recorder::start(info, name())).collect();
    set(network, paths, "loss", "0");
    let flows: Vec<_> = recorders.iter().map(|r| Bulk::of(network, kind.0, kind.1, &r.name)).collect();
    during(&recorders, 800);
    set(network, paths, "loss", "0.01");
    during(&recorders, 700);
    set(network, paths, "loss", "1");
    during(&recorders, 1000);
    set(network, paths, "loss", "0");
    during(&recorders, 800);
    let stops: Vec<_> = flows.into_iter().map(|flow| thread::spawn(|| flow.stop())).collect();
    let start = Instant::now();
    while stops.iter().any(|stop| !stop.is_finished()) {
        // a background takes its time where a busy machine makes delays
        assert!(start.elapsed() < Duration::from_secs(300), "what was written has not arrived");
        during(&recorders, 50);
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(130) && recorders.iter().any(|r| r.count(RELEASE) < r.count(INIT)) {
        during(&recorders, 50);
    }
    recorders.into_iter().zip(stops.into_iter().map(|stop| stop.join().unwrap())).collect()
}

/// The same, without holes in the recordings, and their replay.
fn record(network: &mut Network, paths: usize, kind: (Protocol, Direction), infos: &[&'static Info], seen: &Seen) {
    let start = Instant::now();
    let recordings = loop {
        let recordings = run(network, paths, kind, infos);
        let Some((holes, _)) = recordings.iter().find(|(recorder, _)| recorder.build.count(LOST) > 0) else {
            break recordings;
        };
        // a busy machine lets the ring's reader wait until it is full
        println!("{}: {} calls found the ring full", holes.info.name, holes.build.count(LOST));
        assert!(start.elapsed() < Duration::from_secs(120), "{}: the recording has holes", holes.info.name);
    };
    for (recorder, bytes) in recordings {
        let calls = recorder.calls();
        let (differences, first) = Recorder::replay(&calls, &Params::new(recorder.info));
        let sockets = recorder.count(INIT);
        println!(
            "{:<15} {:>3} subflows {:>6} calls {:>2} differences {:>8} bytes; ack {} grow {} send {} ssthresh {} undo {} event {}",
            recorder.info.name,
            sockets,
            calls.len(),
            differences,
            bytes,
            recorder.count(ACK),
            recorder.count(GROW),
            recorder.count(SEND),
            recorder.count(SSTHRESH),
            recorder.count(UNDO),
            recorder.count(EVENT),
        );
        assert_eq!(differences, 0, "{}: {}", recorder.info.name, first.unwrap_or_default());
        let siblings = Recorder::siblings(&calls).unwrap_or_else(|what| panic!("{}: {what}", recorder.info.name));
        seen.see("views of siblings", siblings);
        assert_eq!(sockets, recorder.count(RELEASE), "{}: every socket is released", recorder.info.name);
        assert_eq!((recorder.left("groups"), recorder.left("flows")), (0, 0), "{}: left behind", recorder.info.name);
        seen.see(format!("{} subflows", calls.iter().map(|c| c.before.group.n).max().unwrap_or(0)), 1);
        let timeouts = calls.iter().filter(|c| c.hook == EVENT && c.event == Event::Timeout as u32).count();
        seen.see("timeouts", timeouts);
        seen.see("reductions", recorder.count(SSTHRESH));
        seen.see("undone reductions", recorder.count(UNDO));
        seen.see("mails posted", calls.iter().filter(|c| c.after.window.is_some_and(|w| w[4] > 0)).count());
        seen.see("mails read", calls.iter().filter(|c| c.before.mail > 0).count());
        seen.see("paced transmit opportunities", calls.iter().filter(|c| c.hook == SEND && c.after.pace > 0).count());
        seen.see("one-way delays", calls.iter().filter(|c| c.hook == ACK && c.delay).count());
        let results = calls.iter().filter(|c| c.hook == ACK && c.after.word[1] != c.before.word[1]).count();
        if recorder.info.name.starts_with("imtcp") {
            seen.see("results of the inline measurement", results);
        }
        // the replay can fail: it does with another initial threshold
        let mut other = Params::new(recorder.info);
        other.set("initial_ssthresh_bytes", 9000).unwrap();
        assert!(Recorder::replay(&calls, &other).0 > 0, "{}: other parameters give the same", recorder.info.name);
    }
}

#[test]
fn recordings_of_live_flows_replay_to_the_byte() {
    let what = "replay of live flows' controllers";
    if !able(what) {
        return;
    }
    // all of them, and five subflows, take a minute and a half: behind `make evidence`
    let whole = std::env::var_os("PATHCAST_EVIDENCE").is_some();
    let infos: Vec<&'static Info> = controllers_in_kernel()
        .filter(|info| whole || ["lia", "lisa", "nice", "bbr3", "gleaner"].contains(&info.name))
        .collect();
    let seen = Seen::default();
    let two = scenario(&[("30Mbit", "10ms"), ("20Mbit", "20ms")], "80 packets");
    let over_two = || {
        let network = network(what, &name(), &two)?;
        if microseconds::known() {
            microseconds::both_ends_count(&network); // or nobody sees a one-way delay
        }
        Some(network)
    };
    let (Some(mut tcp), Some(mut mptcp)) = (over_two(), over_two()) else { return };
    let uncoupled = ["imtcp", "imtcp_bg", "nice", "lp", "ledbatpp", "bbr3", "gleaner"];
    let uncoupled: Vec<_> = infos.iter().copied().filter(|info| uncoupled.contains(&info.name)).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            for batch in uncoupled.chunks(3) {
                record(&mut tcp, 2, (Protocol::TCP, Direction::Ab), batch, &seen);
            }
        });
        if multipath() {
            for batch in infos.chunks(5) {
                record(&mut mptcp, 2, (Protocol::MPTCP, Direction::Ab), batch, &seen);
            }
        }
    });
    drop((tcp, mptcp));
    if whole && multipath() {
        // one more than the shim copies at once
        let paths = [("8Mbit", "10ms"), ("6Mbit", "20ms"), ("8Mbit", "15ms"), ("4Mbit", "30ms"), ("6Mbit", "12ms")];
        let Some(mut network) = network(what, &name(), &scenario(&paths, "30 packets")) else { return };
        for batch in infos.chunks(5) {
            record(&mut network, 5, (Protocol::MPTCP, Direction::Ab), batch, &seen);
        }
        println!("the server sends");
        let coupled: Vec<_> = infos.iter().copied().filter(|i| ["lia", "olia", "lisa"].contains(&i.name)).collect();
        record(&mut network, 5, (Protocol::MPTCP, Direction::Ba), &coupled, &seen);
    } else if !multipath() {
        println!("SKIPPED: {what} over MPTCP: this kernel has none; mend: a kernel with CONFIG_MPTCP");
    }
    let seen = seen.0.into_inner().unwrap();
    for (what, n) in &seen {
        println!("{n:>8}  {what}");
    }
    let mut needed = vec!["timeouts", "reductions"];
    if multipath() {
        needed.extend(["2 subflows", "views of siblings"]);
    }
    if whole {
        needed.extend(["paced transmit opportunities", "results of the inline measurement"]);
        needed.extend(microseconds::known().then_some("one-way delays"));
        needed.extend(multipath().then_some("5 subflows"));
    }
    for what in needed {
        assert!(seen.get(what).is_some_and(|n| *n > 0), "never seen: {what}");
    }
}
