//! Whole measurements in the simulator: both ends' machines, their datagrams and clocks, over links with cross traffic.

use pathcast_base::{Bytes, Nanos, Stream};
use pathcast_estimate::{Budget, Effort};
use pathcast_measure::{Client, ClockState, Direction, FarEnd, FarEndMachine, MeasureLimits, Request};
use pathcast_scenario::Scenario;
use pathcast_session::{Entropy, Key, KeyRing};
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

fn client(request: Request) -> Box<Client> {
    Box::new(Client::new(request, entropy(1)))
}

fn server() -> Box<FarEndMachine> {
    let keys = KeyRing::new([key()]);
    Box::new(FarEndMachine::new(FarEnd::new(keys, MeasureLimits::default(), ClockState::default(), entropy(2))))
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

/// The keys of a bottleneck, and constant cross traffic there and back; clocks seconds apart that drift.
struct Mid {
    keys: &'static str,
    cross: [&'static str; 2],
    paths: usize,
}

const FIVE: &str = r#"rate = "5Mbit", delay = "10ms", queue = "50 packets""#;

impl Mid {
    fn text(&self) -> String {
        let (mut links, mut paths, mut traffic) = (String::new(), String::new(), String::new());
        for path in 0..self.paths {
            let access = r#"rate = "100Mbit", delay = "1ms", queue = "1000 packets""#;
            links += &format!(
                r#"{{ name = "in{path}", a = "client", b = "r{path}", {access} }},
                {{ name = "mid{path}", a = "r{path}", b = "s{path}", {} }},
                {{ name = "out{path}", a = "s{path}", b = "server", {access} }},"#,
                self.keys
            );
            paths += &format!(r#"{{ name = "p{path}", links = ["in{path}", "mid{path}", "out{path}"] }},"#);
            for (direction, rate) in ["ab", "ba"].into_iter().zip(self.cross).filter(|(_, rate)| !rate.is_empty()) {
                traffic += &format!(
                    r#"{{ name = "{direction}{path}", kind = "constant", link = "mid{path}", direction = "{direction}", rate = "{rate}", packet = "1500B" }},"#
                );
            }
        }
        format!(
            "link = [{links}]\npath = [{paths}]\ntraffic = [{traffic}]\n[host.client]\nclock_offset = \"3s\"\n\
             clock_skew_ppm = 20\n[host.server]\nclock_offset = \"-1s\"\nclock_skew_ppm = -10\n"
        )
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

fn within(value: &Value, truth: f64, share: f64) {
    let got = number(value);
    assert!((got / truth - 1.0).abs() <= share, "{got} is not within {share} of {truth}");
}

/// Both rates of a direction are within their shares of the truth, and a small packet's delay within its bound.
fn judge(result: &Value, path: usize, word: &str, truth: (f64, f64), share: f64, delay: f64) {
    let d = &result["paths"][path]["directions"][word];
    within(&d["capacity_bps"]["value"], truth.0, 0.01);
    within(&d["available_bps"]["value"], truth.1, share);
    assert_eq!(d["available_bps"]["why"], Value::Null, "{d}");
    let (minimum, error) = (number(&d["delay_s"]["minimum"]["value"]), number(&d["delay_s"]["error"]));
    assert!((minimum - delay).abs() <= error, "{minimum} for {delay}, error {error}");
    assert_eq!(d["delay_s"]["clock"]["synchronised"], false);
}

/// The delay of 120 bytes over the access links and a bottleneck [s].
fn small(rate: f64, delay: f64) -> f64 {
    2e-3 + delay + 960.0 * (2.0 / 1e8 + 1.0 / rate)
}

#[test]
fn each_direction_says_when_it_was_probed() {
    let mid = Mid { keys: FIVE, cross: ["", ""], paths: 1 };
    let (result, _) = measure(&mid.text(), request(350, 1500));
    let [out, back] = ["out", "in"].map(|word| {
        let when = &result["paths"][0]["directions"][word]["probed_s"];
        [number(&when[0]), number(&when[1])]
    });
    // 350 kB at 5 Mbit/s, one direction after the other
    for [first, last] in [out, back] {
        assert!((0.3..1.5).contains(&(last - first)), "{result:#}");
    }
    assert!(0.02 < out[0] && out[1] < back[0] && back[1] < number(&result["elapsed_s"]), "{result:#}");
}

#[test]
fn five_megabits_within_the_budget() {
    for (cross, left) in [("", 5.0), ("500kbit", 4.5), ("1500kbit", 3.5), ("3Mbit", 2.0)] {
        for (kb, ms, share) in [(1000, 3000, 0.02), (350, 1500, 0.04)] {
            let mid = Mid { keys: FIVE, cross: [cross, cross], paths: 1 };
            let (result, report) = measure(&mid.text(), request(kb, ms));
            for word in ["out", "in"] {
                judge(&result, 0, word, (5.0 * MBIT, left * MBIT), share, small(5e6, 0.01));
                assert_eq!(number(&result["paths"][0]["directions"][word]["loss"]["lost"]), 0.0);
            }
            let sent = report.client.sent_bytes + report.server.sent_bytes;
            assert!(sent <= 2 * kb * 1000, "{sent}");
            within(&result["probe_bytes"], sent as f64, 0.001);
            assert!(report.elapsed <= Nanos::millis(2 * ms + 100), "{:?}", report.elapsed);
        }
    }
}

#[test]
fn an_asymmetric_path_with_cross_traffic_both_ways() {
    let keys = r#"rate = { ab = "1Mbit", ba = "24Mbit" }, delay = "15ms", queue = "50 packets""#;
    let mid = Mid { keys, cross: ["300kbit", "8Mbit"], paths: 1 };
    let (result, _) = measure(&mid.text(), request(1000, 4000));
    judge(&result, 0, "out", (1.0 * MBIT, 0.7 * MBIT), 0.03, small(1e6, 0.015));
    judge(&result, 0, "in", (24.0 * MBIT, 16.0 * MBIT), 0.03, small(24e6, 0.015));
}

#[test]
fn a_slow_link() {
    let keys = r#"rate = "100kbit", delay = "10ms", queue = "50 packets""#;
    let (result, report) = measure(&Mid { keys, cross: ["", "30kbit"], paths: 1 }.text(), request(150, 20_000));
    judge(&result, 0, "out", (0.1 * MBIT, 0.1 * MBIT), 0.03, small(1e5, 0.01));
    judge(&result, 0, "in", (0.1 * MBIT, 0.07 * MBIT), 0.03, small(1e5, 0.01));
    assert!(report.client.sent_bytes + report.server.sent_bytes <= 301_000, "{report:?}");
}

#[test]
fn two_paths_in_turn_and_at_once() {
    let mid = Mid { keys: FIVE, cross: ["1500kbit", "3Mbit"], paths: 2 };
    let mut elapsed = Vec::new();
    for at_once in [false, true] {
        let (result, report) = measure(&mid.text(), Request { paths: 2, at_once, ..request(1000, 3000) });
        for path in 0..2 {
            judge(&result, path, "out", (5.0 * MBIT, 3.5 * MBIT), 0.02, small(5e6, 0.01));
            judge(&result, path, "in", (5.0 * MBIT, 2.0 * MBIT), 0.02, small(5e6, 0.01));
        }
        elapsed.push(report.elapsed.as_secs_f64());
    }
    assert!(elapsed[0] > 1.8 * elapsed[1], "{elapsed:?}");
}

#[test]
fn far_away() {
    let keys = r#"rate = "5Mbit", delay = "298ms", queue = "100 packets""#;
    let (result, report) = measure(&Mid { keys, cross: ["2Mbit", ""], paths: 1 }.text(), request(1000, 6000));
    judge(&result, 0, "out", (5.0 * MBIT, 3.0 * MBIT), 0.1, small(5e6, 0.298));
    judge(&result, 0, "in", (5.0 * MBIT, 5.0 * MBIT), 0.1, small(5e6, 0.298));
    assert!(report.elapsed <= Nanos::millis(13_000), "{:?}", report.elapsed);
}

#[test]
fn loss_both_ways() {
    let keys = r#"rate = "5Mbit", delay = "10ms", queue = "100 packets", loss = 0.05"#;
    let (result, _) = measure(&Mid { keys, cross: ["1500kbit", "1500kbit"], paths: 1 }.text(), request(1000, 4000));
    for word in ["out", "in"] {
        judge(&result, 0, word, (5.0 * MBIT, 3.5 * MBIT), 0.06, small(5e6, 0.01));
        let loss = &result["paths"][0]["directions"][word]["loss"];
        let loss = number(&loss["lost"]) / number(&loss["packets"]);
        assert!((0.02..0.09).contains(&loss), "{loss}");
    }
}

#[test]
fn a_host_that_gathers_packets() {
    let mid = Mid { keys: FIVE, cross: ["1500kbit", "1500kbit"], paths: 1 };
    let gathers = ["client", "server"].map(|host| format!("[host.{host}]\nreceive_batch = \"1ms\"\n"));
    let text = gathers.iter().fold(mid.text(), |text, of| {
        let (head, keys) = of.split_once('\n').unwrap();
        text.replace(head, &format!("{head}\n{keys}"))
    });
    let (result, _) = measure(&text, request(1000, 3000));
    for word in ["out", "in"] {
        let d = &result["paths"][0]["directions"][word];
        within(&d["capacity_bps"]["value"], 5.0 * MBIT, 0.05);
        within(&d["available_bps"]["value"], 3.5 * MBIT, 0.1);
    }
}

/// A line whose rate, delay, queue, loss and load follow from the number: rate [bit/s], what is left there and back, keys.
fn random_line(number: u64) -> (f64, [f64; 2], Mid) {
    let mut stream = Stream::new(number, "light");
    let rate = 1e5 * 10f64.powf(stream.between(0.0, 4.0));
    let load =
        if rate > 5e7 { [0.0; 2] } else { [0, 1].map(|_| (stream.between(-0.4, 0.8) * 20.0).round().max(0.0) / 20.0) };
    let (delay, queue) = (stream.between(1.0, 100.0), stream.between(5.0, 300.0) as u64);
    let loss = if number.is_multiple_of(4) { stream.between(0.0, 0.4) } else { 0.0 };
    let keys = format!(r#"rate = "{rate:.0}bit", delay = "{delay:.1}ms", queue = "{queue} packets", loss = {loss:.4}"#);
    let cross = load.map(|load| if load > 0.0 { format!("{:.0}bit", rate * load) } else { String::new() });
    let paths = if number.is_multiple_of(5) { 2 } else { 1 };
    let mid = Mid { keys: keys.leak(), cross: cross.map(|text| &*text.leak()), paths };
    let rate = rate.min(1e8); // of the access links
    (rate, load.map(|load| rate * (1.0 - load)), mid)
}

/// All that both ends send over any line stays below what 1 GB a month allows, and what is said of the line holds.
#[test]
fn a_light_measurement_keeps_its_bound_over_any_line() {
    let (mut said, mut held, mut given, mut capacities) = (0, 0, 0, 0);
    for number in 0..60 {
        let (rate, left, mid) = random_line(number);
        let budget = Budget { bytes: Bytes(Effort::LIGHT_BYTES), time: Nanos::secs(10) };
        let (paths, effort) = (mid.paths, Effort::Light);
        let request = Request { paths, budget, sparing: true, effort, seed: number, ..Request::new(key()) };
        let (result, report) = measure(&mid.text(), request);
        let sent = report.client.sent_bytes + report.server.sent_bytes;
        assert!(sent <= 1_000_000_000 / 8640 * paths as u64, "{sent} B on line {number}: {}", mid.keys);
        for (word, left) in ["out", "in"].into_iter().zip(left) {
            let d = &result["paths"][0]["directions"][word];
            let (c, a) = (&d["capacity_bps"], &d["available_bps"]);
            given += i32::from(c["value"].is_number());
            capacities += i32::from(c["value"].as_f64().is_some_and(|c| (c / rate - 1.0).abs() < 0.05));
            let value = a["value"].as_f64();
            if value.is_some() {
                said += 1;
                held += i32::from(
                    number_or(&a["low"], 0.0) <= 1.005 * left && 0.995 * left <= number_or(&a["high"], f64::MAX),
                );
            }
        }
    }
    assert!(given >= 80 && capacities * 100 >= given * 95, "{capacities} of {given} capacities of 120");
    assert!(said >= 70 && held * 100 >= said * 85, "{held} of {said} of 120");
}

fn number_or(value: &Value, otherwise: f64) -> f64 {
    value.as_f64().unwrap_or(otherwise)
}

/// Two paths of 8 Mbit/s, over one link or over one each.
fn pair(shared: bool, queue: &str) -> String {
    let mid = format!(r#"rate = "8Mbit", delay = "10ms", queue = {queue}"#);
    let (mut links, mut paths) = (String::new(), String::new());
    if shared {
        links += &format!(r#"{{ name = "mid", a = "r", b = "s", {mid} }},"#);
    }
    for path in 0..2 {
        let way = 1 + 9 * path;
        let (a, b) = if shared { ("r".into(), "s".into()) } else { (format!("r{path}"), format!("s{path}")) };
        let name = if shared { "mid".into() } else { format!("mid{path}") };
        if !shared {
            links += &format!(r#"{{ name = "{name}", a = "{a}", b = "{b}", {mid} }},"#);
        }
        // a node between, since two links do not join the same two nodes
        links += &format!(
            r#"{{ name = "in{path}", a = "client", b = "c{path}", delay = "{way}ms" }},
            {{ name = "to{path}", a = "c{path}", b = "{a}" }}, {{ name = "from{path}", a = "{b}", b = "d{path}" }},
            {{ name = "out{path}", a = "d{path}", b = "server" }},"#
        );
        paths += &format!(
            r#"{{ name = "p{path}", links = ["in{path}", "to{path}", "{name}", "from{path}", "out{path}"] }},"#
        );
    }
    format!("link = [{links}]\npath = [{paths}]\n")
}

#[test]
fn paths_that_share_a_bottleneck_are_told_from_others_in_both_directions() {
    for (shared, queue) in [(true, r#"{ kind = "fq_codel" }"#), (false, r#""60 packets""#)] {
        let effort = pathcast_estimate::Effort::Thorough { queue: Nanos::millis(500) };
        let budget = Budget { bytes: Bytes(20_000_000), time: Nanos::secs(2) };
        let request = Request { paths: 2, effort, budget, sparing: true, ..Request::new(key()) };
        let (result, _) = measure(&pair(shared, queue), request);
        for path in 0..2 {
            let known = result["paths"][path]["shared_with"].as_array().unwrap();
            assert_eq!(known.len(), 2, "{known:?}");
            for one in known {
                assert_eq!(one["path"], 1 - path, "{one}");
                let probability = number(&one["probability"]["value"]);
                assert_eq!(probability > 0.5, shared, "{queue}: {one}");
                assert!((probability - 0.5).abs() > 0.4, "{queue}: {one}");
            }
        }
    }
}

/// A bottleneck of 20 Mbit/s, what its keys say besides, and the measurement of one direction.
fn beside_two(queue: &str, control: &str) -> Value {
    let text = format!(
        r#"link = [{{ name = "in", a = "client", b = "r", rate = "1Gbit", delay = "1ms" }},
          {{ name = "mid", a = "r", b = "server", rate = "20Mbit", delay = "10ms", queue = {queue} }}]
path = [{{ name = "p", links = ["in", "mid"] }}]
traffic = [{{ kind = "tcp", path = "p", flows = 2, stagger = "130ms", control = "{control}" }}]"#
    );
    let request = Request { directions: vec![Direction::Out], sparing: true, ..request(20_000, 30_000) };
    measure(&text, request).0["paths"][0]["directions"]["out"].take()
}

/// The probes get a third of the line, and say so, and how much the line has.
#[test]
fn a_fair_queues_capacity_is_not_the_probes_share() {
    for queue in [
        r#"{ kind = "fq_codel" }"#,
        r#"{ kind = "fq_codel", quantum = "300B" }"#,
        r#"{ kind = "fair", packets = 100 }"#,
    ] {
        for control in ["cubic", "bbr3"] {
            let found = beside_two(queue, control);
            let capacity = &found["capacity_bps"];
            within(&capacity["value"], 20e6, 0.02);
            assert_eq!(capacity["why"], Value::Null, "{queue} {control} {capacity}");
            within(&found["available_bps"]["value"], 20e6 / 3.0, 0.1);
            assert_eq!(found["queue"]["discipline"], "fair", "{queue} {control}");
        }
    }
    assert_ne!(beside_two(r#""50 packets""#, "cubic")["queue"]["discipline"], "fair");
}

/// With some thirty probes a direction the capacity is told, and where packets gather it is not made up.
#[test]
fn a_light_measurement_tells_the_capacity_or_that_it_does_not_know() {
    let light = |keys: &str| {
        let text = format!(
            r#"link = [{{ name = "mid", a = "client", b = "r", delay = "5ms", {keys} }},
              {{ name = "out", a = "r", b = "server", rate = "10Gbit", delay = "5ms", queue = "5MB" }}]
path = [{{ name = "p", links = ["mid", "out"] }}]"#
        );
        let request = request(Effort::LIGHT_BYTES / 1000, 10_000);
        let found = measure(&text, Request { effort: Effort::Light, sparing: true, ..request }).0;
        assert!(number(&found["probe_bytes"]) <= Effort::LIGHT_BYTES as f64);
        let of = |word: &str| found["paths"][0]["directions"][word]["capacity_bps"].clone();
        [of("out"), of("in")]
    };
    for (keys, rate) in [(r#"rate = "40Mbit""#, 40e6), (r#"rate = "100Mbit""#, 100e6), (r#"rate = "1Gbit""#, 1e9)] {
        for capacity in light(keys) {
            within(&capacity["value"], rate, 0.01);
            assert_eq!(capacity["why"], Value::Null, "{keys} {capacity}");
        }
    }
    for keys in [
        r#"rate = "50Mbit", aggregation = { every = "2ms", bytes = "15KB" }"#,
        r#"rate = "300Mbit", aggregation = { every = "125us", bytes = "25KB" }"#,
        r#"rate = "300Mbit", aggregation = { every = "4ms", bytes = "300KB" }"#,
    ] {
        for capacity in light(keys) {
            assert_ne!(capacity["why"], Value::Null, "{keys} {capacity}");
        }
    }
}
