//! Whole measurements in the simulator: both ends' machines, their datagrams and clocks, over links with cross traffic.

use pathcast_base::{Bytes, Nanos};
use pathcast_probe::estimate::Budget;
use pathcast_probe::measure::{ClockState, FarEnd, Lone, MeasureLimits, MethodName, Request};
use pathcast_probe::session::{Entropy, Key, KeyRing};
use pathcast_scenario::Scenario;
use pathcast_sim::{Options, SessionReport, World};
use serde_json::Value;

const MBIT: f64 = 1e6;

fn key() -> Key {
    Key::new("tester", *b"a secret of the right length....").unwrap()
}

fn entropy(byte: u8) -> Entropy {
    Entropy { nonce: [byte; 32], session: [byte; 16] }
}

fn request(kb: u64, ms: u64) -> Request {
    let budget = Budget { bytes: Bytes(kb * 1000), time: Nanos::millis(ms) };
    Request { budget, ..Request::new(key()) }
}

fn client(request: Request) -> Box<pathcast_probe::measure::Client> {
    Box::new(pathcast_probe::measure::Client::new(request, entropy(1)))
}

fn server() -> Box<Lone> {
    let keys = KeyRing::new([key()]);
    Box::new(Lone::new(FarEnd::new(keys, MeasureLimits::default(), ClockState::default(), entropy(2))))
}

/// A measurement that begins after two seconds of cross traffic.
fn measure(scenario: &str, request: Request) -> (Value, SessionReport) {
    let mut world = World::new(Scenario::parse(scenario, &[]).unwrap()).unwrap();
    world.wait(Nanos::secs(2));
    let paths: Vec<usize> = (0..request.paths).collect();
    let report = world.session(client(request), server(), &paths, &Options::default(), |_| ()).unwrap();
    world.check().unwrap();
    let result = serde_json::from_slice(&report.result).unwrap();
    (result, report)
}

/// 5 Mbit/s both ways with constant cross traffic on the way out, clocks seconds apart and skewed.
fn five(cross: &str, seed: u64) -> String {
    let traffic = if cross == "0" {
        String::new()
    } else {
        format!(
            r#"traffic = [{{ name = "x", kind = "constant", link = "mid", direction = "ab", rate = "{cross}", packet = "1500B" }}]"#
        )
    };
    format!(
        r#"
seed = {seed}
link = [
    {{ name = "in", a = "client", b = "r1", rate = "100Mbit", delay = "1ms", queue = "1000 packets" }},
    {{ name = "mid", a = "r1", b = "r2", rate = "5Mbit", delay = "10ms", queue = "50 packets" }},
    {{ name = "out", a = "r2", b = "server", rate = "100Mbit", delay = "1ms", queue = "1000 packets" }},
]
path = [{{ name = "p", links = ["in", "mid", "out"] }}]
{traffic}
[host.client]
clock_offset = "3s"
clock_skew_ppm = 20
[host.server]
clock_offset = "-1s"
clock_skew_ppm = -10
"#
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn first() {
    for cross in ["0", "1500kbit", "3Mbit"] {
        let (result, report) = measure(&five(cross, 1), request(1000, 3000));
        println!("{cross} {} {:?}", serde_json::to_string(&result).unwrap(), report);
    }
    let _ = (MethodName::Ride, MBIT, number(&Value::from(1.0)));
}
