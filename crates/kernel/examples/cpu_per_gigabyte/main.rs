//! Processor time per gigabyte of every controller in the kernel, over veth pairs of MTU 1500, in pairs with the kernel's
//! own reno: reno, X, reno, X. Both ends run on one processor; see `transfer.rs` for what is counted. Prints a table.
//!
//! `cargo run --release -p pathcast-kernel --example cpu_per_gigabyte -- [--pairs 5] [--gigabytes 1.5] [NAME...]`

mod programs;
mod transfer;

use std::process::{Command, exit};
use std::time::{Duration, Instant};

use pathcast_base::Fault;
use pathcast_congestion::{Info, Params};
use pathcast_emu::Namespace;
use pathcast_kernel::{Loaded, controllers_in_kernel, ready};
use programs::{Calls, Statistics};
use socket2::Protocol;
use transfer::{Cost, Job, run};

/// Those that look at the other subflows are measured over MPTCP too.
const COUPLED: [&str; 6] = ["lia", "olia", "balia", "lisa", "gsam", "subflow_switch"];
/// At most so much above the kernel's reno.
const BAR: f64 = 1.10;
const BAR_LOAD: Duration = Duration::from_millis(100);

/// How packets go, and the share of `--gigabytes` that is sent so.
#[derive(Clone, Copy)]
struct Wire {
    what: &'static str,
    /// Most packets that go to the device at once.
    segments: Option<u32>,
    /// The route's bound on every window (packet).
    window: Option<u32>,
    share: f64,
    /// Only for these, if any are named.
    only: &'static [&'static str],
}
const WIRES: [Wire; 4] = [
    Wire { what: "up to 64 KB at once", segments: None, window: None, share: 1.0, only: &[] },
    Wire { what: "packet by packet", segments: Some(1), window: None, share: 0.3, only: &[] },
    Wire {
        what: "an ACK for two packets, windows held to 2",
        segments: Some(1),
        window: Some(2),
        share: 0.3,
        only: &[],
    },
    Wire {
        what: "trains, windows held to 64",
        segments: Some(1),
        window: Some(64),
        share: 0.1,
        only: &["imtcp", "imtcp_bg"],
    },
];

/// Trains over these paths of some microseconds too, which there are none of by default. What they cost has no bar.
const TRAINS: [(&str, u64); 1] = [("rtt_least_us", 0)];

struct Options {
    pairs: usize,
    bytes: u64,
    only: Vec<String>,
}

fn options() -> Options {
    let mut options = Options { pairs: 5, bytes: 1_500_000_000, only: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = |text: Option<String>| text.and_then(|text| text.parse::<f64>().ok()).filter(|n| *n > 0.0);
        match word.as_str() {
            "--pairs" => options.pairs = number(words.next()).expect("--pairs takes a number") as usize,
            "--gigabytes" => options.bytes = (number(words.next()).expect("--gigabytes takes a number") * 1e9) as u64,
            name => options.only.push(name.into()),
        }
    }
    options
}

/// Two namespaces with two veth pairs between them, removed with this value.
struct Hosts {
    near: Namespace,
    far: Namespace,
}

fn ip(command: &str) {
    let done = Command::new("ip").args(command.split(' ')).status().expect("the Debian package iproute2");
    assert!(done.success(), "ip {command}");
}

impl Hosts {
    fn new(wire: &Wire) -> Result<Hosts, Box<dyn std::error::Error>> {
        let name = |end: &str| format!("pcg{}-{end}", std::process::id());
        let hosts = Hosts { near: Namespace::create(&name("a"))?, far: Namespace::create(&name("b"))? };
        let (a, b) = (hosts.near.name(), hosts.far.name());
        for n in 0..2 {
            ip(&format!("-n {a} link add v{n} mtu 1500 type veth peer name v{n} mtu 1500 netns {b}"));
            for (name, host) in [(a, 1), (b, 2)] {
                ip(&format!("-n {name} addr add 10.77.{n}.{host}/24 dev v{n}"));
                ip(&format!("-n {name} link set v{n} up"));
                if let Some(most) = wire.window {
                    ip(&format!(
                        "-n {name} route replace 10.77.{n}.0/24 dev v{n} src 10.77.{n}.{host} cwnd lock {most}"
                    ));
                }
                if let Some(most) = wire.segments {
                    ip(&format!("-n {name} link set v{n} gso_max_segs {most}"));
                }
            }
        }
        if std::fs::exists("/proc/sys/net/mptcp")? {
            ip(&format!("-n {a} mptcp limits set subflows 2 add_addr_accepted 2"));
            ip(&format!("-n {b} mptcp limits set subflows 2 add_addr_accepted 2"));
            ip(&format!("-n {b} mptcp endpoint add 10.77.1.2 dev v1 signal"));
        }
        Ok(hosts)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
fn span(values: &[f64]) -> (f64, f64) {
    (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max))
}

/// One controller with one setting, over one protocol.
struct Case {
    info: &'static Info,
    settings: &'static [(&'static str, u64)],
    protocol: Protocol,
}

struct Bench {
    hosts: Hosts,
    wire: Wire,
    options: Options,
    name: String,
}

impl Bench {
    fn job<'a>(&'a self, protocol: Protocol, control: &'a str) -> Job<'a> {
        Job {
            near: self.hosts.near.name(),
            far: self.hosts.far.name(),
            to: [10, 77, 0, 2],
            protocol,
            control,
            bytes: (self.options.bytes as f64 * self.wire.share) as u64,
            most: Duration::from_secs(6),
            cpu: std::thread::available_parallelism().map_or(1, |n| n.get()) - 1,
        }
    }

    fn load(&self, case: &Case) -> Loaded {
        let mut params = Params::new(case.info);
        for (key, value) in case.settings {
            params.set(key, *value).unwrap();
        }
        Loaded::load(&self.name, &params, None).unwrap()
    }

    /// Ratios to the kernel's reno, and the costs.
    fn pairs(&self, protocol: Protocol, control: &str) -> (Vec<f64>, Vec<Cost>, Vec<Cost>) {
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..self.options.pairs {
            theirs.push(run(self.job(protocol, "reno")));
            own.push(run(self.job(protocol, control)));
        }
        let ratios = own.iter().zip(&theirs).map(|(own, theirs)| own.per_gigabyte() / theirs.per_gigabyte()).collect();
        (ratios, own, theirs)
    }

    /// The calls of its programs in one more transfer.
    fn inside(&self, case: &Case, loaded: &Loaded) -> (Vec<Calls>, Cost) {
        let statistics = Statistics::start();
        let cost = run(self.job(case.protocol, loaded.name()));
        (statistics.map_or_else(Vec::new, |statistics| statistics.of(loaded)), cost)
    }

    fn row(&self, case: &Case) -> bool {
        let loaded = self.load(case);
        let (ratios, own, theirs) = self.pairs(case.protocol, loaded.name());
        let (calls, cost) = self.inside(case, &loaded);
        let per_gigabyte = |n: u64| n as f64 / cost.bytes as f64;
        let of = |costs: &[Cost], what: fn(&Cost) -> f64| median(&costs.iter().map(what).collect::<Vec<_>>());
        let (least, most) = span(&ratios);
        let mut name = case.info.name.to_owned();
        if !case.settings.is_empty() {
            name += ", trains";
        }
        println!(
            "{name:<22} {:>6.3} {:>6.3}..{:<6.3} {:>8.0} {:>8.0} {:>6.1} {:>6.1} {:>7.1}  {}",
            median(&ratios),
            least,
            most,
            1e3 * of(&own, Cost::per_gigabyte),
            1e3 * of(&theirs, Cost::per_gigabyte),
            of(&own, Cost::gigabits_per_s),
            of(&theirs, Cost::gigabits_per_s),
            1e3 * per_gigabyte(calls.iter().map(|calls| calls.ns).sum()),
            calls
                .iter()
                .filter(|calls| calls.calls > 100)
                .map(|c| format!("{} {:.0}k x {} ns", c.name, 1e6 * per_gigabyte(c.calls), c.ns / c.calls))
                .collect::<Vec<_>>()
                .join(", ")
        );
        median(&ratios) <= BAR
    }
}

/// Controllers over one wire and protocol; whether all are within the bar.
fn table(bench: &Bench, protocol: Protocol, infos: &[&'static Info]) -> bool {
    println!(
        "{:<22} {:>6} {:^14} {:>8} {:>8} {:>6} {:>6} {:>7}  calls per GB",
        "controller", "ratio", "least..most", "ms/GB", "reno", "Gb/s", "reno", "in BPF"
    );
    let mut holds = true;
    for &info in infos {
        if bench.wire.only.contains(&info.name) {
            bench.row(&Case { info, settings: &TRAINS, protocol });
        }
        holds &= bench.row(&Case { info, settings: &[], protocol });
    }
    holds
}

/// How long it takes to load each; whether all are within the bar.
fn loading(name: &str, infos: &[&'static Info]) -> bool {
    println!("loading, 5 times (ms)    median   most   (bar: {} ms)", BAR_LOAD.as_millis());
    let mut holds = true;
    for &info in infos {
        let mut times = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            let loaded = Loaded::load(name, &Params::new(info), None).unwrap();
            times.push(start.elapsed().as_secs_f64() * 1e3);
            loaded.unload().unwrap();
        }
        holds &= median(&times) < BAR_LOAD.as_secs_f64() * 1e3;
        println!("{:<22} {:>8.1} {:>6.1}", info.name, median(&times), span(&times).1);
    }
    holds
}

fn main() {
    if let Err(error) = ready() {
        eprintln!("{error}; {}", error.hint().unwrap_or_default());
        exit(error.exit() as i32);
    }
    let only = options().only;
    let infos: Vec<&'static Info> =
        controllers_in_kernel().filter(|info| only.is_empty() || only.iter().any(|name| name == info.name)).collect();
    let coupled: Vec<&'static Info> =
        infos.iter().copied().filter(|info| COUPLED.contains(&info.name) || info.name == "reno").collect();
    let name = format!("pcg{}", std::process::id());
    let mut holds = loading(&name, &infos);
    for wire in WIRES {
        let hosts = Hosts::new(&wire).unwrap_or_else(|error| {
            eprintln!("{error}");
            exit(1)
        });
        let bench = Bench { hosts, wire, options: options(), name: name.clone() };
        let _ = run(bench.job(Protocol::TCP, "reno")); // the first one finds cold caches
        let pairs = bench.options.pairs;
        let among = |info: &&'static Info| wire.only.is_empty() || wire.only.contains(&info.name);
        println!("\nTCP, {}, {pairs} pairs", wire.what);
        holds &= table(&bench, Protocol::TCP, &infos.iter().copied().filter(among).collect::<Vec<_>>());
        if !wire.only.is_empty() {
            continue;
        }
        println!("\nMPTCP with two subflows, {}, {pairs} pairs", wire.what);
        if std::fs::exists("/proc/sys/net/mptcp").unwrap_or(false) {
            holds &= table(&bench, Protocol::MPTCP, &coupled);
        } else {
            println!("SKIPPED: this kernel has no MPTCP");
        }
    }
    println!("\n{}", if holds { "all within the bars" } else { "NOT all within the bars" });
}
