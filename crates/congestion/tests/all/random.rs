//! Whatever happens to a flow: no panic, no window of 0, nothing near the end of u32, and the same twice.

use pathcast_congestion::{Ack, Connection, Event, Flow, INFINITE, Instance, Params, State, controllers};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Ack { acked: u32, rtt: u32, owd: u32, grow: bool },
    Loss,
    Timeout,
    Undo,
    Event(Event),
    Send,
    Limited(bool),
    Leave,
}

fn steps() -> impl Strategy<Value = Vec<(usize, u64, Step)>> {
    let rtt = prop_oneof![6 => 1_000u32..400_000, 1 => Just(0), 1 => 1u32..100, 1 => 1_000_000u32..100_000_000];
    let acked = prop_oneof![8 => 1u32..4, 1 => 0u32..200, 1 => 0u32..100_000];
    let step = prop_oneof![
        30 => (acked, rtt, any::<u32>(), prop::bool::weighted(0.9))
            .prop_map(|(acked, rtt, owd, grow)| Step::Ack { acked, rtt, owd, grow }),
        2 => Just(Step::Loss),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
        1 => prop_oneof![Just(Event::TxStart), Just(Event::Idle), Just(Event::Recovered)].prop_map(Step::Event),
        8 => Just(Step::Send),
        1 => any::<bool>().prop_map(Step::Limited),
        1 => Just(Step::Leave),
    ];
    let gap = prop_oneof![6 => 0u64..20_000, 1 => 0u64..5_000_000, 1 => 0u64..100_000_000];
    prop::collection::vec((0usize..3, gap, step), 1..300)
}

/// A window's most: none, or small as that of a route may be (`ip route … cwnd lock`).
fn most() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(1u32 << 30), 1 => 1u32..8, 1 => 1u32..1000]
}

struct Subflow {
    flow: Flow,
    instance: Instance,
    left: bool,
}

fn play(params: &Params, cwnd: u32, cwnd_max: u32, script: &[(usize, u64, Step)]) -> Vec<(u32, u32, u64)> {
    let mut connection = Connection::new();
    let mut subflows = Vec::new();
    let mut now = 1_000_000;
    let mut trace = Vec::new();
    for i in 0..3 {
        let mut flow = Flow::new(1448, cwnd.min(cwnd_max));
        flow.srtt_us = [40_000, 0, 300_000][i];
        flow.now_us = now;
        flow.cwnd_max = cwnd_max;
        connection.join(&mut flow).unwrap();
        let mut instance = Instance::new(params);
        instance.init(&mut flow);
        connection.deliver(&flow);
        connection.meet(&mut flow, false);
        subflows.push(Subflow { flow, instance, left: false });
    }
    for (i, gap, step) in script {
        now += gap;
        let Subflow { flow, instance, left } = &mut subflows[*i];
        if *left {
            continue;
        }
        flow.now_us = now;
        flow.nxt = flow.nxt.max(flow.una + u64::from(flow.cwnd) * u64::from(flow.mss));
        flow.in_flight = flow.cwnd;
        match *step {
            Step::Ack { acked, rtt, owd, grow } => {
                flow.delivered = flow.delivered.wrapping_add(acked);
                flow.lost = flow.lost.wrapping_add([0, 0, 0, 1, 0, 0, 7, 0][owd as usize & 7]);
                flow.set_starved(owd & 0xf00 == 0);
                flow.set_state([State::Open, State::Open, State::Cwr, State::Recovery][owd as usize >> 12 & 3]);
                flow.una = flow.nxt.min(flow.una + u64::from(acked) * u64::from(flow.mss));
                if rtt > 0 {
                    flow.srtt_us = if flow.srtt_us == 0 { rtt } else { flow.srtt_us - flow.srtt_us / 8 + rtt / 8 };
                }
                let ack = Ack::new(acked, rtt).with_one_way_delay(owd);
                instance.ack(flow, &ack);
                if grow {
                    connection.meet(flow, true);
                    instance.grow(flow, &ack);
                    connection.deliver(flow);
                }
            }
            Step::Loss | Step::Timeout => {
                connection.meet(flow, false);
                let ssthresh = instance.ssthresh(flow);
                assert!(ssthresh >= 1);
                flow.prior_cwnd = flow.cwnd;
                flow.ssthresh = ssthresh;
                if let Step::Loss = step {
                    flow.cwnd = ssthresh.min(flow.cwnd);
                    instance.event(flow, Event::Recovered);
                } else {
                    instance.event(flow, Event::Timeout);
                    flow.set_state(State::Loss);
                    flow.cwnd = 1;
                }
                flow.cwnd_cnt = 0;
                connection.meet(flow, false);
            }
            Step::Undo => flow.cwnd = instance.undo(flow).min(flow.cwnd_max),
            Step::Event(event) => instance.event(flow, event),
            Step::Send => instance.send(flow),
            Step::Limited(limited) => flow.set_limited(limited),
            Step::Leave if *i == 2 => {
                instance.release(flow);
                connection.leave(flow);
                *left = true;
            }
            Step::Leave => {}
        }
        let name = instance.info().name;
        assert!(flow.cwnd >= 1 && flow.cwnd <= cwnd_max, "{name}: cwnd {} after {step:?}", flow.cwnd);
        assert!((1..=INFINITE).contains(&flow.ssthresh), "{name}: ssthresh {} after {step:?}", flow.ssthresh);
        assert!(flow.cwnd_cnt < 1 << 30, "{name}: cwnd_cnt {} after {step:?}", flow.cwnd_cnt);
        assert!(flow.burst < 1 << 20, "{name}: burst {}", flow.burst);
        trace.push((flow.cwnd, flow.ssthresh, flow.pace_bytes_per_s));
    }
    trace
}

proptest! {
    #[test]
    fn nothing_breaks_with_default_parameters(
        script in steps(), cwnd in 1u32..200, cwnd_max in most(),
    ) {
        for info in controllers() {
            let params = Params::new(info);
            prop_assert_eq!(play(&params, cwnd, cwnd_max, &script), play(&params, cwnd, cwnd_max, &script));
        }
    }

    #[test]
    fn nothing_breaks_with_any_allowed_parameters(
        script in steps(), cwnd_max in most(), draws in prop::collection::vec((0u32..4, any::<u32>()), 24),
    ) {
        for info in controllers() {
            let mut params = Params::new(info);
            for (param, &(kind, draw)) in info.params.iter().zip(&draws) {
                let span = u64::from(param.most - param.least) + 1;
                let value = match kind {
                    0 => param.least,
                    1 => param.most,
                    2 => param.default,
                    _ => param.least + (u64::from(draw) % span) as u32,
                };
                params.set(param.name, value.into()).unwrap();
            }
            play(&params, 10, cwnd_max, &script);
        }
    }
}
