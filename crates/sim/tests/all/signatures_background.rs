//! What the background transports are recognised by, in the simulator.

use crate::common::{Row, Rows, Text, near, shows};

const PLAIN: &str = "preset = \"rfc\"; delayed_ack = 1";

/// Nice sees a deep queue that Reno keeps: its window falls to one packet every 48 RTTs.
#[test]
fn nice_falls_to_a_48th_of_a_packet_against_greedy_reno() {
    let (report, rows) = Text::new(1, "300s")
        .path("p", "rate = \"12Mbit\"; delay = \"20ms\"; queue = \"1000 packets\"")
        .flow("nice", &["p"], "nice", "")
        .flow("reno", &["p"], "reno", "start = \"5s\"")
        // Reno's window is held at 300 packets: the queue never empties and never overflows
        .table("[tcp]", &format!("{PLAIN}; receive_buffer = \"{}B\"", 300 * 1448))
        .traced();
    let nice = rows.of(0, 0);
    let late: Vec<&Row> = nice.iter().filter(|row| row.time > 150.0).collect();
    let srtt = late[late.len() - 1].srtt;
    let gaps: Vec<f64> = late.windows(2).map(|w| (w[1].time - w[0].time) / srtt).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    shows("nice against reno, deep queue: RTTs between two packets", format!("{mean:.1} ({} gaps)", gaps.len()));
    assert!(late.iter().all(|row| row.cwnd == 1));
    near(mean, 48.0, 0.05, "one packet every so many RTTs");
    let reno = report.flows[1].goodput_bps * 1500.0 / 1448.0;
    shows("reno's share beside nice", format!("{:.4}", reno / 12e6));
    assert!(reno > 0.98 * 12e6, "{reno}");
}

#[test]
fn lp_falls_to_one_packet_inside_its_inference_phase() {
    let (report, rows) = Text::new(1, "60s")
        .path("p", "rate = \"12Mbit\"; delay = \"20ms\"; queue = \"300 packets\"")
        .flow("lp", &["p"], "lp", "")
        .flow("reno", &["p"], "reno", "start = \"10s\"")
        .table("[tcp]", PLAIN)
        .traced();
    let lp = rows.of(0, 0);
    // cuts without a loss: an indication
    let cuts: Vec<(&Row, &Row)> = lp
        .windows(2)
        .filter(|w| w[1].cwnd < w[0].cwnd && w[1].state == 0 && w[0].state == 0)
        .map(|w| (&w[0], &w[1]))
        .collect();
    assert!(!cuts.is_empty());
    let (mut halved, mut ones) = (0, 0);
    for (i, (before, after)) in cuts.iter().enumerate() {
        let inside = i > 0 && after.time - cuts[i - 1].1.time < 3.0 * cuts[i - 1].1.srtt;
        let slow = before.cwnd < before.ssthresh; // it has doubled since
        let expected = if inside { 1 } else { (before.cwnd / if slow { 4 } else { 2 }).max(1) };
        assert_eq!(after.cwnd, expected, "{before:?} {after:?}");
        halved += u64::from(!inside);
        ones += u64::from(inside);
    }
    shows("lp beside reno: cuts to a half, to one packet", format!("{halved} {ones}"));
    assert!(halved > 0 && ones > 0);
    // nothing grows within 3 RTT of a cut
    for pair in lp.windows(2) {
        let cut = cuts.iter().rev().find(|(_, after)| after.time <= pair[0].time);
        if let Some((_, after)) = cut.filter(|(_, after)| pair[1].time < after.time + 3.0 * after.srtt - 1e-4) {
            assert!(pair[1].cwnd <= pair[0].cwnd || pair[0].state > 0, "{pair:?} {after:?}");
        }
    }
    shows(
        "lp's and reno's goodput [Mbit/s]",
        format!("{:.2} {:.2}", report.flows[0].goodput_bps / 1e6, report.flows[1].goodput_bps / 1e6),
    );
}

/// One-way delays, where the timestamps tell them, see the same queue as round-trip times.
#[test]
fn lp_alone_uses_the_line_by_either_delay() {
    let [coarse, fine] = ["usec_timestamps = false", "usec_timestamps = true"].map(|tcp| {
        let report = Text::new(1, "60s")
            .path("p", "rate = \"10Mbit\"; delay = \"20ms\"; queue = \"33 packets\"")
            .flow("lp", &["p"], "lp", "")
            .table("[tcp]", tcp)
            .run();
        let goodput = report.flows[0].goodput_bps / 1e6;
        shows(&format!("lp alone, {tcp} [Mbit/s]"), format!("{goodput:.2}"));
        goodput
    });
    assert!(coarse > 7.0 && fine > 0.9 * coarse, "{coarse} {fine}");
}

/// Without SACK a repair ends with an ACK of packets that waited behind the hole. How long they did is no delay of the path.
#[test]
fn losses_do_not_make_lp_and_nice_blind_to_queues() {
    for control in ["lp", "nice"] {
        for sack in [true, false] {
            let report = Text::new(1, "120s")
                .path("p", "rate = \"10Mbit\"; delay = \"20ms\"; queue = \"33 packets\"")
                .flow("back", &["p"], control, "")
                .flow("front", &["p"], "reno", "start = \"30s\"")
                .table("[tcp]", &format!("preset = \"ns2\"; sack = {sack}"))
                .run();
            let [back, front] = [0, 1].map(|i| report.flows[i].goodput_bps / 1e6);
            shows(&format!("{control} and reno, SACK {sack} [Mbit/s]"), format!("{back:.2} {front:.2}"));
            assert!(front > 8.0, "{control}, SACK {sack}: {back} {front}");
        }
    }
}

/// A slowdown holds two packets for 2 RTT and ramps up again; the next one comes nine times as long after it.
#[test]
fn ledbatpp_spends_a_tenth_of_its_time_in_slowdowns() {
    for (mbit, ms) in [(12, 20), (12, 60)] {
        let (report, rows) = Text::new(1, "200s")
            .path("p", &format!("rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; queue = \"1000 packets\""))
            .flow("f", &["p"], "ledbatpp", "")
            .table("[tcp]", PLAIN)
            .traced();
        let rows = rows.of(0, 0);
        let begins: Vec<usize> =
            (1..rows.len()).filter(|&i| rows[i].cwnd == 2 && rows[i - 1].cwnd > 4 && rows[i].state == 0).collect();
        let slowdowns: Vec<(f64, f64)> = begins
            .iter()
            .filter_map(|&i| {
                rows[i..].iter().find(|row| row.cwnd >= rows[i].ssthresh).map(|end| (rows[i].time, end.time))
            })
            .collect();
        assert!(slowdowns.len() > 3, "{slowdowns:?}");
        let mut ratios = Vec::new();
        for pair in slowdowns.windows(2) {
            ratios.push((pair[1].0 - pair[0].1) / (pair[0].1 - pair[0].0));
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let used: f64 = slowdowns[1..slowdowns.len() - 1].iter().map(|(from, to)| to - from).sum();
        let share = used / (slowdowns[slowdowns.len() - 1].0 - slowdowns[1].0);
        let what = format!("ledbatpp alone, {mbit} Mbit/s, RTT {} ms", 2 * ms);
        shows(
            &format!("{what}: slowdowns, pause in durations, share of time"),
            format!("{} {mean:.2} {share:.3}", slowdowns.len()),
        );
        assert!(ratios[1..].iter().all(|ratio| (8.5..10.0).contains(ratio)), "{ratios:?}");
        near(share, 0.1, 0.06, &what);
        // and it holds the queue at its target meanwhile
        let queue = rows[rows.len() / 2..].iter().map(|row| row.srtt).fold(0.0, f64::max) - f64::from(ms) * 0.002;
        shows(
            &format!("{what}: largest queueing delay [ms], utilisation"),
            format!("{:.1} {:.3}", queue * 1e3, report.links[0].utilisation),
        );
        assert!(queue < 0.070, "{queue}");
    }
}

/// Foreground Reno alone, then with a background flow beside it: the share that it keeps, its goodput alone, the
/// background's; means over four starts of the background flow.
fn foreground(control: &str, link: &str, foreground: &str) -> (f64, f64, f64) {
    let text = Text::new(1, "120s").path("p", link).flow("front", &["p"], "reno", foreground).table("[tcp]", PLAIN);
    let alone = text.run().flows[0].goodput_bps;
    let (mut kept, mut got) = (0.0, 0.0);
    for start in ["5s", "5300ms", "6700ms", "9s"] {
        let both = text.clone().flow("back", &["p"], control, &format!("start = \"{start}\"")).run();
        kept += both.flows[0].goodput_bps / alone / 4.0;
        got += both.flows[1].goodput_bps / 4.0;
    }
    (kept, alone, got)
}

/// Beside one greedy Reno flow, and beside pages that use a quarter of the line.
#[test]
fn background_flows_leave_a_foreground_flow_its_throughput() {
    let link = "rate = \"12Mbit\"; delay = \"20ms\"; queue = \"80 packets\"";
    // the least that the foreground keeps, and the least share of the spare bandwidth that is used beside pages
    for (control, least, used) in
        [("imtcp_bg", 0.9, 0.6), ("nice", 0.93, 0.1), ("lp", 0.95, 0.3), ("ledbatpp", 0.85, 0.6), ("reno", 0.0, 0.6)]
    {
        let (kept, _, got) = foreground(control, link, "");
        let what = format!("{control} beside greedy reno: share that reno keeps, background [Mbit/s]");
        shows(&what, format!("{kept:.3} {:.2}", got / 1e6));
        let (pages, alone, got) = foreground(control, link, "web = { page = \"60KB\", think = \"50ms\" }");
        let spare = got / (12e6 * 1448.0 / 1500.0 - alone);
        let what = format!("{control} beside pages: share that they keep, share of the spare bandwidth used");
        shows(&what, format!("{pages:.3} {spare:.3}"));
        assert!(kept >= least && pages >= least && spare >= used, "{control}: {kept} {pages} {spare}");
        if control == "reno" {
            assert!(kept < 0.7 && pages < 0.7, "Reno is no background transport: {kept} {pages}");
        }
    }
}

/// Over devices that take bunches of packets: nothing has to leave by itself for it to know what a line carries.
#[test]
fn gleaner_fills_idle_lines_and_leaves_them_to_reno() {
    for (mbit, ms, packets) in [(10, 50, 42), (100, 10, 167), (100, 50, 1600)] {
        let line = format!("rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; queue = \"{packets} packets\"");
        let rate = |rows: &[Row], from: f64, to: f64| {
            let at = |time: f64| rows.iter().rev().find(|row| row.time <= time).unwrap().acked;
            (at(to) - at(from)) as f64 * 8.0 / (to - from) * 1500.0 / 1448.0 / (f64::from(mbit) * 1e6)
        };
        let buffers = "send_buffer = \"64MiB\"; receive_buffer = \"64MiB\"";
        let front =
            |text: Text| text.path("p", &line).flow("front", &["p"], "reno", "start = \"20s\"").table("[tcp]", buffers);
        let (_, single) = front(Text::new(1, "40s")).traced();
        let (_, both) = front(Text::new(1, "40s")).flow("back", &["p"], "gleaner", "").traced();
        let reno = |rows: &Rows| rate(&rows.of(0, 0), 28.0, 40.0);
        let (alone, kept) = (rate(&both.of(1, 0), 10.0, 20.0), reno(&both) / reno(&single));
        shows(
            &format!("gleaner at {mbit} Mbit/s, RTT {} ms: alone, Reno keeps", 2 * ms),
            format!("{alone:.3} {kept:.3}"),
        );
        assert!(alone > 0.9, "{mbit} Mbit/s, {ms} ms: {alone}");
        assert!(kept > 0.9, "{mbit} Mbit/s, {ms} ms: {kept}");
    }
}

/// In a queue too short for its delay to tell of others in time, and in CoDel over a long path, losses do.
#[test]
fn gleaner_leaves_lines_with_short_queues() {
    let twenty = "queue = \"20 packets\"";
    let codel = "queue = { ab = { kind = \"codel\" }, ba = \"1000 packets\" }";
    for (mbit, ms, queue, least) in [
        (50, 50, twenty, 0.7),
        (50, 50, codel, 0.7),
        (100, 50, "queue = \"83 packets\"", 0.8),
        (5, 10, "queue = \"2 packets\"", 0.7),
    ] {
        let line = format!("rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; {queue}");
        let rate = |rows: &[Row], from: f64, to: f64| {
            let at = |time: f64| rows.iter().rev().find(|row| row.time <= time).map_or(0, |row| row.acked);
            (at(to) - at(from)) as f64 * 8.0 / (to - from) * 1500.0 / 1448.0 / (f64::from(mbit) * 1e6)
        };
        let text = |end: &str| {
            Text::new(1, end).path("p", &line).table("[tcp]", "send_buffer = \"64MiB\"; receive_buffer = \"64MiB\"")
        };
        let front = |text: Text| text.flow("front", &["p"], "cubic", "start = \"1s\"");
        let (_, single) = front(text("60s")).traced();
        let (_, both) = front(text("60s")).flow("back", &["p"], "gleaner", "start = \"8s\"").traced();
        let (_, idle) = text("40s").flow("back", &["p"], "gleaner", "").traced();
        let kept = rate(&both.of(0, 0), 8.0, 60.0) / rate(&single.of(0, 0), 8.0, 60.0);
        let alone = rate(&idle.of(0, 0), 20.0, 40.0);
        shows(
            &format!("gleaner at {mbit} Mbit/s, RTT {} ms, {queue}: CUBIC keeps, alone", 2 * ms),
            format!("{kept:.3} {alone:.3}"),
        );
        assert!(kept > 0.87, "{mbit} Mbit/s, {queue}: {kept}");
        assert!(alone > least, "{mbit} Mbit/s, {queue}: {alone}");
    }
}

/// A policer drops where nothing waits. It is known by what it lets through while it is full: the same twice, far from the line's rate.
#[test]
fn gleaner_leaves_policed_lines_to_cubic_and_fills_them_alone() {
    let shares = |rows: &[Row], mbit: f64, from: f64, to: f64| {
        let at = |time: f64| rows.iter().rev().find(|row| row.time <= time).map_or(0, |row| row.acked);
        (at(to) - at(from)) as f64 * 8.0 / (to - from) * 1500.0 / 1448.0 / (mbit * 1e6)
    };
    for (line, mbit, rtt_us, burst) in
        [(100, 20.0, 30_000, 625), (300, 10.6, 69_000, 23), (300, 17.5, 41_000, 22), (100, 5.6, 108_000, 58)]
    {
        let policer = format!("policer = {{ ab = {{ rate = \"{mbit}Mbit\", burst = \"{burst}KB\" }} }}");
        let link = format!("rate = \"{line}Mbit\"; delay = \"{}us\"; queue = \"500 packets\"; {policer}", rtt_us / 2);
        let text = |end: &str| {
            Text::new(1, end).path("p", &link).table("[tcp]", "send_buffer = \"64MiB\"; receive_buffer = \"64MiB\"")
        };
        let front = |text: Text| text.flow("front", &["p"], "cubic", "start = \"1s\"");
        let (_, single) = front(text("90s")).traced();
        let (_, both) = front(text("90s")).flow("back", &["p"], "gleaner", "start = \"8s\"").traced();
        let kept = shares(&both.of(0, 0), mbit, 20.0, 90.0) / shares(&single.of(0, 0), mbit, 20.0, 90.0);
        let (_, idle) = text("60s").flow("back", &["p"], "gleaner", "").traced();
        let alone = shares(&idle.of(0, 0), mbit, 20.0, 60.0);
        shows(
            &format!("gleaner behind a policer of {mbit} of {line} Mbit/s, {burst} kB: CUBIC keeps, alone"),
            format!("{kept:.3} {alone:.3}"),
        );
        assert!(kept > 0.85, "{mbit} of {line} Mbit/s, {burst} kB: {kept}");
        assert!(alone > 0.65, "{mbit} of {line} Mbit/s, {burst} kB: {alone}");
    }
}

/// Its share of an idle line of so many Mbit/s, between two times [s].
fn gleaner_alone(seed: u64, line: &str, mbit: f64, from: f64, to: f64) -> f64 {
    let (_, alone) = Text::new(seed, &format!("{to}s"))
        .path("p", line)
        .flow("back", &["p"], "gleaner", "")
        .table("[tcp]", "send_buffer = \"64MiB\"; receive_buffer = \"64MiB\"")
        .traced();
    let rows = alone.of(0, 0);
    let at = |time: f64| rows.iter().rev().find(|row| row.time <= time).map_or(0, |row| row.acked);
    (at(to) - at(from)) as f64 * 8.0 / (to - from) * 1500.0 / 1448.0 / (mbit * 1e6)
}

/// What a wire loses, one packet at a time whatever is sent, is no queue's.
#[test]
fn gleaner_fills_lines_that_lose() {
    // the last queue is a twentieth of what the path holds, and overflows now and then
    for (mbit, ms, packets, loss, least) in [
        (50, 10, 41, 0.001, 0.9),
        (50, 10, 41, 0.003, 0.85),
        (200, 10, 166, 0.0001, 0.9),
        (50, 50, 208, 0.001, 0.8),
        (50, 50, 21, 0.001, 0.7),
    ] {
        let line = format!(
            "rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; queue = \"{packets} packets\"; loss = {{ ab = {loss} }}"
        );
        let share = gleaner_alone(2, &line, f64::from(mbit), 20.0, 60.0);
        shows(
            &format!("gleaner at {mbit} Mbit/s, RTT {} ms, {packets} packets, losses of {loss}", 2 * ms),
            format!("{share:.3}"),
        );
        assert!(share > least, "{mbit} Mbit/s, {ms} ms, {packets} packets, {loss}: {share}");
    }
}

/// A packet that a wire loses among the first ones is no queue's: a short queue takes a row of them. Of these starts four had nothing
/// for fifteen seconds, and one of them for ever.
#[test]
fn gleaner_starts_where_a_wire_loses_the_first() {
    let share = |seed: u64, loss: f64| {
        let line = format!("rate = \"50Mbit\"; delay = \"10ms\"; queue = \"83 packets\"; loss = {{ ab = {loss} }}");
        gleaner_alone(seed, &line, 50.0, 6.0, 16.0)
    };
    for loss in [0.003, 0.01] {
        let all: Vec<f64> = (500..530).map(|seed| share(seed, loss)).collect();
        let least = all.iter().copied().fold(1.0, f64::min);
        shows(&format!("gleaner over losses of {loss} from 6 to 16 s, least of thirty starts"), format!("{least:.3}"));
        assert!(least > 0.25, "{loss}: {all:.2?}");
    }
}

/// A rate that has fallen to two packets a second is asked for by pairs, which are acknowledged at once, and measured with.
#[test]
fn gleaner_comes_back_when_reno_has_left() {
    for (mbit, ms, packets) in [(10, 10, 17), (10, 40, 67), (30, 10, 50)] {
        let line = format!("rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; queue = \"{packets} packets\"");
        let (_, both) = Text::new(1, "40s")
            .path("p", &line)
            .flow("back", &["p"], "gleaner", "")
            .flow("front", &["p"], "reno", "start = \"10s\"; stop = \"25s\"")
            .table("[tcp]", "send_buffer = \"64MiB\"; receive_buffer = \"64MiB\"")
            .traced();
        let rows = both.of(0, 0);
        let at = |time: f64| rows.iter().rev().find(|row| row.time <= time).unwrap().acked;
        let share = (at(40.0) - at(30.0)) as f64 * 8.0 / 10.0 * 1500.0 / 1448.0 / (f64::from(mbit) * 1e6);
        shows(&format!("gleaner at {mbit} Mbit/s, RTT {} ms, 5 to 15 s after Reno", 2 * ms), format!("{share:.3}"));
        assert!(share > 0.8, "{mbit} Mbit/s, {ms} ms: {share}");
    }
}

/// Who was there first gives the line up to the other, though it measures that all of it is its own.
#[test]
fn two_gleaners_share_a_line() {
    let start = |seconds: u32| format!("start = \"{seconds}s\"");
    let (_, both) = Text::new(1, "120s")
        .path("p", "rate = \"100Mbit\"; delay = \"20ms\"; queue = \"333 packets\"")
        .flow("first", &["p"], "gleaner", &start(0))
        .flow("second", &["p"], "gleaner", &start(20))
        .table("[tcp]", "send_buffer = \"64MiB\"; receive_buffer = \"64MiB\"")
        .traced();
    let share = |flow: u64| {
        let rows = both.of(flow, 0);
        let at = |time: f64| rows.iter().rev().find(|row| row.time <= time).unwrap().acked;
        (at(120.0) - at(80.0)) as f64 * 8.0 / 40.0 * 1500.0 / 1448.0 / 100e6
    };
    let shares = (share(0), share(1));
    shows("two gleaners at 100 Mbit/s, shares", format!("{:.3} {:.3}", shares.0, shares.1));
    assert!(shares.0.min(shares.1) > 0.3 && shares.0 + shares.1 > 0.85, "{shares:?}");
}
