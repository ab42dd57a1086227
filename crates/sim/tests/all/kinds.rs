//! Thorough measurements in the simulator: each kind of line is known for what it is, by both ends' machines and datagrams.

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::{Budget, Effort};
use pathcast_measure::{Client, ClockState, Direction, FarEnd, FarEndMachine, MeasureLimits, Request};
use pathcast_scenario::Scenario;
use pathcast_session::{Entropy, Key, KeyRing};
use pathcast_sim::{Options, World};
use serde_json::Value;

fn thorough(text: &str, direction: Direction) -> Value {
    within(text, direction, Nanos::secs(10), Nanos::millis(11_500))
}

/// What was found in `time`, and in no more than `most` with all that belongs to it.
fn within(text: &str, direction: Direction, time: Nanos, most: Nanos) -> Value {
    let key = Key::new("tester", *b"a secret of the right length....").unwrap();
    let request = Request {
        directions: vec![direction],
        budget: Budget { bytes: Bytes(50_000_000), time },
        sparing: true,
        effort: Effort::Thorough { queue: Effort::QUEUE },
        ..Request::new(key.clone())
    };
    let client = Client::new(request, Entropy { nonce: [1; 32], session: [1; 16] });
    let entropy = Entropy { nonce: [2; 32], session: [2; 16] };
    let far = FarEnd::new(KeyRing::new([key]), MeasureLimits::default(), ClockState::default(), entropy);
    let mut world = World::new(Scenario::parse(text, &[]).unwrap()).unwrap();
    world.wait(Nanos::secs(4));
    let far = Box::new(FarEndMachine::new(far));
    let report = world.session(Box::new(client), far, &[0], &Options::default(), |_| ()).unwrap();
    assert!(report.elapsed <= most, "{:?}", report.elapsed);
    let result: Value = serde_json::from_slice(&report.result).unwrap();
    result["paths"][0]["directions"][direction.word()].clone()
}

/// A bottleneck of 5 Mbit/s with these keys, and what goes beside the measurement.
fn line(keys: &str, more: &str) -> String {
    format!(
        r#"
        name = "kinds"
        [[link]]
        name = "wan"
        a = "client"
        b = "r"
        rate = "5Mbit"
        delay = "10ms"
        {keys}
        [[link]]
        name = "access"
        a = "r"
        b = "server"
        rate = "1Gbit"
        delay = "1ms"
        queue = "1000 packets"
        [[path]]
        name = "path"
        links = ["wan", "access"]
        {more}
        "#
    )
}

/// Probabilities that it is fair, that it is managed, and that there is a policer.
fn kind(found: &Value) -> [f64; 3] {
    ["/queue/fair", "/queue/managed", "/policer/probability"]
        .map(|entry| found.pointer(entry).unwrap()["value"].as_f64().unwrap_or_else(|| panic!("{entry}: {found}")))
}

fn is(found: &Value, fair: bool, managed: bool, policer: bool) {
    let said = kind(found);
    for (probability, is) in said.iter().zip([fair, managed, policer]) {
        assert!(if is { *probability > 0.65 } else { *probability < 0.35 }, "{said:?}: {found}");
    }
}

const POISSON: &str = r#"
    [[traffic]]
    kind = "poisson"
    link = "wan"
    direction = "ab"
    rate = "2Mbit"
    packet = "1500B"
"#;

#[test]
fn a_queue_that_overflows_and_its_depth() {
    for (more, direction) in [("", Direction::Out), (POISSON, Direction::Out), ("", Direction::In)] {
        let found = thorough(&line(r#"queue = "100 packets""#, more), direction);
        is(&found, false, false, false);
        // 100 wait, be they of 1500 bytes
        near(&found["queue"]["depth_s"], 0.24);
        near(&found["queue"]["depth_bytes"], 150_000.0);
        assert_eq!(found["loss"]["random"]["low"], 0.0, "{found}");
    }
}

fn near(found: &Value, truth: f64) {
    let value = found["value"].as_f64().unwrap_or_else(|| panic!("{found}"));
    assert!((value / truth - 1.0).abs() < 0.04, "{found}");
}

/// It fills as fast with small packets as with large ones.
#[test]
fn a_queue_that_counts_bytes() {
    for more in ["", POISSON] {
        let found = thorough(&line(r#"queue = "120KB""#, more), Direction::Out);
        near(&found["queue"]["depth_s"], 120e3 * 8.0 / 5e6);
    }
}

/// A satellite's: of the ten seconds most is waiting for reports, so that it begins to listen before the last of the ride are there.
/// Five round trips go by around it.
#[test]
fn a_slow_line_of_long_round_trips() {
    let slow = |text: String| text.replace("5Mbit", "600kbit").replace("10ms", "650ms").replace("2Mbit", "100kbit");
    let text = slow(line(r#"queue = "300 packets""#, POISSON));
    let found = within(&text, Direction::Out, Effort::THOROUGH_TIME, Nanos::millis(10_500 + 5 * 1300));
    near(&found["capacity_bps"], 600e3);
    let available = &found["available_bps"];
    let off = available["value"].as_f64().unwrap_or_else(|| panic!("{available}")) / 500e3 - 1.0;
    assert!(off.abs() < 0.1, "{available}");
    assert!(found["queue"]["depth_s"]["low"].as_f64().unwrap() > 0.25, "{found}");
    assert!(found["loss"]["random"]["value"].is_number(), "{found}");
}

#[test]
fn a_queue_longer_than_may_be_built() {
    let found = thorough(&line(r#"queue = "1000 packets""#, ""), Direction::Out);
    is(&found, false, false, false);
    let depth = &found["queue"]["depth_s"];
    assert!(depth["value"].is_null() && depth["why"] == "beyond-limit", "{depth}");
    let low = depth["low"].as_f64().unwrap();
    assert!((0.35..0.52).contains(&low), "{depth}");
}

#[test]
fn queues_that_are_managed_and_queues_for_every_flow() {
    for (kind, fair, managed) in
        [("codel", false, true), ("pie", false, true), ("fq_codel", true, true), ("fair", true, false)]
    {
        let packets = if kind == "fair" { ", packets = 100" } else { "" };
        let keys = format!("queue = {{ kind = \"{kind}\"{packets} }}");
        let found = thorough(&line(&keys, POISSON), Direction::Out);
        is(&found, fair, managed, false);
    }
    is(&thorough(&line(r#"queue = { kind = "fq_codel" }"#, ""), Direction::In), true, true, false);
}

#[test]
fn a_policer_its_rate_and_burst() {
    let keys = r#"queue = "100 packets"
        policer = { rate = "2Mbit", burst = "50KB" }"#;
    let found = thorough(&line(keys, ""), Direction::Out);
    assert!(kind(&found)[2] > 0.9, "{found}");
    let rate = found["policer"]["rate_bps"]["value"].as_f64().unwrap();
    assert!((rate / 2e6 - 1.0).abs() < 0.1, "{rate}");
}

#[test]
fn losses_of_the_wire_apart_from_those_of_the_queue() {
    let found = thorough(&line("queue = \"60 packets\"\nloss = { ab = 0.02, ba = 0.0 }", ""), Direction::Out);
    is(&found, false, false, false);
    let random = &found["loss"]["random"];
    let [low, value, high] = ["low", "value", "high"].map(|key| random[key].as_f64().unwrap());
    assert!(low <= 0.02 && 0.02 <= high && high < 2.0 * low && (0.013..0.03).contains(&value), "{random}");
    let counted = |key: &str| found["loss"][key].as_f64().unwrap();
    assert!(counted("lost") > 0.03 * counted("packets"), "the queue's too: {found}");
}

#[test]
fn who_gives_way() {
    let tcp = "[[traffic]]\nkind = \"tcp\"\npath = \"path\"\nflows = 2\n";
    let keys = r#"queue = "60 packets""#;
    let elastic = |more| thorough(&line(keys, more), Direction::Out)["cross"]["elastic"]["value"].as_f64().unwrap();
    assert!(elastic(tcp) > 0.9 && elastic(POISSON) < 0.2, "{} {}", elastic(tcp), elastic(POISSON));
}
