//! Samples of flows: at their times, never falling, and of the same run that the report tells of.

use pathcast_base::Nanos;
use pathcast_scenario::Scenario;
use pathcast_sim::{Options, sampled, simulate};

const TWO: &str = r#"
end = "4s"
link = [
  { name = "a", a = "client", b = "server", rate = "10Mbit", delay = "10ms", queue = "40 packets" },
  { name = "b", a = "client", b = "server", rate = "5Mbit", delay = "20ms", queue = "40 packets" },
]
path = [{ name = "p1", links = ["a"] }, { name = "p2", links = ["b"] }]
flow = [
  { name = "long", paths = ["p1", "p2"], control = "lia" },
  { name = "short", paths = ["p1"], bytes = "200KB", start = "1s" },
  { name = "some", paths = ["p2"], start = "500ms", stop = "2250ms" },
  { name = "pages", paths = ["p1"], web = { page = "20KB", think = "100ms" } },
]
"#;

fn scenario() -> Scenario {
    Scenario::parse(TWO, &[]).unwrap()
}

#[test]
fn samples_are_at_their_times_and_add_up_to_the_report() {
    let (report, series) = sampled(scenario(), &Options::default(), Nanos::millis(100)).unwrap();
    for (index, flow) in report.flows.iter().enumerate() {
        let samples = series.flow(index);
        assert!(samples.is_sorted_by(|a, b| a.at_s < b.at_s && a.bytes_acked <= b.bytes_acked), "{}", flow.name);
        let last = samples.last().unwrap();
        assert!(samples[0].at_s >= flow.start_s && last.bytes_acked <= flow.bytes, "{}", flow.name);
        for sample in samples {
            let carried: u64 = sample.subflows.iter().map(|s| s.bytes_acked).sum();
            // what came over two subflows is carried twice, and what came too early is not acknowledged yet; the stream's
            // acknowledgement may come over another subflow before the subflow's own
            let out: u64 = sample.subflows.iter().map(|s| u64::from(s.cwnd_packets) * 1424).sum();
            let ahead = if sample.subflows.len() > 1 { out } else { 0 };
            assert!(flow.name == "pages" || sample.bytes_acked <= carried + ahead, "{}: {sample:?}", flow.name);
        }
    }
    let times = |index: usize| (series.flow(index).len(), series.flow(index).last().unwrap().at_s);
    assert_eq!(times(0), (40, 4.0));
    assert!(times(1).1 < 1.0 + report.flows[1].completion_s.unwrap());
    assert_eq!(times(2).1, 2.25, "the stop itself is a sample");
    assert!(series.flow(3).last().unwrap().bytes_acked > 0);
    assert_eq!(series.flow(0)[39].subflows.len(), 2);
}

#[test]
fn sampling_changes_nothing() {
    let flows = |report: pathcast_sim::Report| serde_json::to_string(&(report.flows, report.links)).unwrap();
    let (report, _) = sampled(scenario(), &Options::default(), Nanos::millis(7)).unwrap();
    assert_eq!(flows(report), flows(simulate(scenario(), &Options::default()).unwrap().report));
}
