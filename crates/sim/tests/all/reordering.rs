//! What TCP makes of packets that overtake each other: three duplicate acknowledgements take it for loss (RFC 5681), RACK
//! learns how late packets are (RFC 8985).

use crate::common::Text;
use pathcast_sim::FlowReport;

/// Packets of 1500 bytes take a millisecond; nothing is lost and no queue overflows. So many packets overtake a late one.
fn transfer(preset: &str, overtakers: u32) -> FlowReport {
    let distance = overtakers * 1000 + 500;
    let reorder = format!("reorder = {{ ab = {{ share = 0.01, distance = \"{distance}us\" }} }}");
    let report = Text::new(1, "")
        .path("p", &format!("rate = \"12Mbit\"; delay = \"20ms\"; queue = \"4000 packets\"; {reorder}"))
        .flow("f", &["p"], "reno", "bytes = \"6MB\"")
        .table(
            "[tcp]",
            &format!(
                "preset = \"{preset}\"; receive_buffer = \"150KB\"{}",
                if preset == "linux" { "; autotuning = false" } else { "" }
            ),
        )
        .run();
    let flow = report.flows[0].clone();
    assert_eq!((flow.bytes, flow.subflows[0].drops, flow.timeouts), (6_000_000, 0, 0), "{flow:?}");
    flow
}

#[test]
fn two_that_overtake_change_nothing() {
    for preset in ["rfc", "ns3", "linux"] {
        let flow = transfer(preset, 2);
        assert_eq!((flow.retransmits, flow.recoveries), (0, 0), "{preset}");
        assert!(flow.goodput_bps > 11e6, "{preset}: {}", flow.goodput_bps);
    }
}

#[test]
fn three_that_overtake_are_a_loss_by_rfc_5681() {
    for preset in ["rfc", "ns3"] {
        let (flow, in_order) = (transfer(preset, 3), transfer(preset, 2));
        // one of a hundred of 4144 packets is late, some of them while one before is repaired
        assert!((10..=60).contains(&flow.recoveries), "{preset}: {}", flow.recoveries);
        assert!(flow.goodput_bps < 0.5 * in_order.goodput_bps, "{preset}: {}", flow.goodput_bps);
    }
}

#[test]
fn the_kernels_way_learns_and_takes_its_reductions_back() {
    let flow = transfer("linux", 3);
    assert_eq!((flow.recoveries, flow.undos), (1, 1), "the first, for nothing");
    for overtakers in [9, 25] {
        let flow = transfer("linux", overtakers);
        assert!(flow.retransmits > 0 && flow.undos == flow.recoveries, "{overtakers}: {flow:?}");
        assert!(flow.goodput_bps > 11e6, "{overtakers}: {}", flow.goodput_bps);
    }
}
