//! Explicit congestion notification over the links' marking queues: marks in place of drops, and the same window for both.

use crate::common::{Text, shows};
use pathcast_sim::FlowReport;

/// 100 s of Reno over a queue that drops or marks, without the overshoot of slow start; the flow, and the queue's drops and marks.
fn reno(queue: &str, ecn: bool, tcp: &str) -> (FlowReport, u64, u64) {
    let text = Text::new(3, "100s")
        .path("p", &format!("rate = \"10Mbit\"; delay = \"20ms\"; queue = {{ {queue}, ecn = true }}"))
        .flow("f", &["p"], "reno", "")
        .table("[tcp]", &format!("{tcp}initial_ssthresh = \"50KB\"; ecn = {ecn}"));
    let mut report = text.run();
    let managed = report.links[0].managed.unwrap();
    (report.flows.remove(0), managed.drops, managed.marks)
}

#[test]
fn marks_take_the_place_of_drops() {
    for queue in
        ["kind = \"codel\"", "kind = \"fq_codel\"", "kind = \"pie\"", "kind = \"red\", min = 10, max = 40, limit = 100"]
    {
        for tcp in ["", "preset = \"rfc\"; ", "preset = \"ns2\"; "] {
            let (dropped, drops, none) = reno(queue, false, tcp);
            let (marked, few, marks) = reno(queue, true, tcp);
            shows(
                &format!("100 s of Reno, {queue}, {tcp}with and without ECN: marks, drops"),
                format!("{marks} and {few}, {none} and {drops}"),
            );
            assert_eq!(none, 0, "{queue}, {tcp}");
            assert!(drops > 20 && dropped.recoveries > 10 && marks > 20, "{queue}, {tcp}: {drops} {marks}");
            assert!(few * 10 < drops, "{queue}, {tcp}: {few} of {drops}");
            assert!(
                marked.retransmits * 5 < dropped.retransmits,
                "{queue}, {tcp}: {} {}",
                marked.retransmits,
                dropped.retransmits
            );
            assert!(marked.goodput_bps > 0.9 * dropped.goodput_bps, "{queue}, {tcp}");
        }
    }
}

/// Without loss a reduction costs no retransmission: as many reductions as marks that were a window apart, and the stream in order.
#[test]
fn multipath_tcp_answers_marks_too() {
    let link = "rate = \"10Mbit\"; delay = \"20ms\"; queue = { kind = \"codel\", ecn = true }";
    let text = Text::new(3, "")
        .path("a", link)
        .path("b", link)
        .flow("f", &["a", "b"], "lia", "bytes = \"20MB\"")
        .table("[tcp]", "ecn = true; initial_ssthresh = \"50KB\"");
    let report = text.run();
    let marks: u64 = report.links.iter().map(|link| link.managed.map_or(0, |managed| managed.marks)).sum();
    assert!(marks > 4, "{marks}");
    assert_eq!((report.flows[0].bytes, report.flows[0].retransmits), (20_000_000, 0));
}
