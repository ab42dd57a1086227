//! Privileged: a controller in the kernel and the same header compiled natively agree to the byte, call by call: all that
//! it may set, what it returns, its whole private state. Random events, run in the kernel one by one.

mod bits;
mod live;

use std::time::Instant;

use bits::{ACK, EVENT, GROW, INIT, SEND, SSTHRESH, TestBuild, UNDO, native};
use live::able;
use pathcast_base::Stream;
use pathcast_congestion::{Ack, Connection, Event, Flow, Info, Instance, Params, State};
use pathcast_kernel::controllers_in_kernel;

/// So many calls for each controller.
const CALLS: usize = 10_000;
/// After so many the flows, the group and the parameters are drawn anew.
const LIFE: usize = 1_000;

struct Subflow {
    flow: Flow,
    instance: Instance,
    state: Vec<u8>,
}

/// Random events on three subflows of a connection, each made natively and in the kernel.
struct World<'a> {
    build: &'a TestBuild,
    random: Stream,
    connection: Connection,
    subflows: Vec<Subflow>,
    now_us: u64,
    calls: usize,
    differences: usize,
    first: Option<String>,
}

impl World<'_> {
    fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.bits() % (high - low + 1)
    }
    fn one_of(&mut self, choices: &[u64]) -> u64 {
        choices[self.random.bits() as usize % choices.len()]
    }

    fn call(&mut self, i: usize, hook: u32, event: u32, ack: &Ack) -> u32 {
        let Subflow { flow, instance, state } = &mut self.subflows[i];
        let mut in_kernel = *flow;
        let mut kernel = self.build.run(hook, event, &mut in_kernel, ack, state);
        let ours = native(instance, hook, event, flow, ack);
        self.calls += 1;
        if kernel != ours {
            self.differences += 1;
            let at = self.calls;
            self.first.get_or_insert_with(|| format!("call {at}, hook {hook}: {kernel:?}\n natively {ours:?}"));
            kernel.state.clone_from(&ours.state);
            state.clone_from(&ours.state); // go on from the same, or all that follow differ
        }
        ours.result
    }

    fn begin(&mut self, params: &Params) {
        self.connection = Connection::new();
        self.subflows.clear();
        for i in 0..3 {
            let most = self.one_of(&[1 << 30, 1 << 30, 500, 20]) as u32;
            let mut flow = Flow::new(1448, (self.number(1, 60) as u32).min(most));
            flow.srtt_us = self.one_of(&[0, 300, 40_000, 250_000]) as u32;
            flow.delivered = self.one_of(&[0, 0xffff_ff00]) as u32;
            flow.now_us = self.now_us;
            flow.cwnd_max = most;
            flow.set_multipath(true);
            self.connection.join(&mut flow).expect("there are free slots");
            let state = vec![0; params.info().state_bytes];
            self.subflows.push(Subflow { flow, instance: Instance::new(params), state });
            self.call(i, INIT, 0, &Ack::default());
            let flow = &mut self.subflows[i].flow;
            self.connection.deliver(flow);
            self.connection.meet(flow, false);
        }
    }

    fn ack(&mut self, i: usize) {
        let acked = match self.number(0, 9) {
            0 => self.number(0, 300),
            1 => self.number(0, 100_000),
            _ => self.number(1, 2),
        } as u32;
        let base = self.one_of(&[300, 20_000, 40_000, 40_000, 40_000, 100_000]);
        let rtt = match self.number(0, 9) {
            0 => 0,
            1 => self.number(1, 90_000_000),
            2..=5 => base + self.number(0, base),
            _ => base + self.number(0, base / 8),
        } as u32;
        let (lost, starved) = (self.one_of(&[0, 0, 0, 0, 1, 2, 40]) as u32, self.random.chance(0.1));
        let flow = &mut self.subflows[i].flow;
        flow.delivered = flow.delivered.wrapping_add(acked);
        flow.lost = flow.lost.wrapping_add(lost);
        flow.set_starved(starved);
        flow.una = flow.nxt.min(flow.una + u64::from(acked) * u64::from(flow.mss));
        if rtt > 0 {
            flow.srtt_us = if flow.srtt_us == 0 { rtt } else { flow.srtt_us - flow.srtt_us / 8 + rtt / 8 };
        }
        let ack = Ack::new(acked, rtt);
        let owd = self.random.bits() as u32;
        let ack = if self.random.chance(0.5) { ack.with_one_way_delay(owd) } else { ack };
        self.call(i, ACK, 0, &ack);
        if self.random.chance(0.9) {
            self.connection.meet(&mut self.subflows[i].flow, true);
            self.call(i, GROW, 0, &ack);
            self.connection.deliver(&self.subflows[i].flow);
        }
    }

    fn reduce(&mut self, i: usize, timeout: bool) {
        self.connection.meet(&mut self.subflows[i].flow, false);
        let ssthresh = self.call(i, SSTHRESH, 0, &Ack::default());
        let flow = &mut self.subflows[i].flow;
        flow.prior_cwnd = flow.cwnd;
        flow.ssthresh = ssthresh;
        flow.cwnd = if timeout { 1 } else { ssthresh.min(flow.cwnd).max(1) };
        flow.cwnd_cnt = 0;
        flow.set_state(if timeout { State::Loss } else { State::Open });
        let event = if timeout { Event::Timeout } else { Event::Recovered };
        self.call(i, EVENT, event as u32, &Ack::default());
        self.connection.meet(&mut self.subflows[i].flow, false);
    }

    fn step(&mut self) {
        let i = self.number(0, 2) as usize;
        self.now_us += match self.number(0, 19) {
            0 => self.number(0, 60_000_000),
            1 | 2 => self.number(0, 1_000_000),
            _ => self.number(0, 15_000),
        };
        let flow = &mut self.subflows[i].flow;
        flow.now_us = self.now_us;
        flow.nxt = flow.nxt.max(flow.una + u64::from(flow.cwnd) * u64::from(flow.mss));
        flow.in_flight = flow.cwnd;
        match self.number(0, 99) {
            0 | 1 => self.reduce(i, false),
            2 => self.reduce(i, true),
            3 => {
                let cwnd = self.call(i, UNDO, 0, &Ack::default());
                let flow = &mut self.subflows[i].flow;
                flow.cwnd = cwnd.clamp(1, flow.cwnd_max);
            }
            4 => {
                let event = self.number(0, 1) as u32; // TX_START or IDLE
                self.call(i, EVENT, event, &Ack::default());
            }
            5 => {
                let limited = self.random.chance(0.7);
                let states =
                    [[State::Open, State::Disorder], [State::Cwr, State::Recovery]][self.number(0, 1) as usize];
                self.subflows[i].flow.set_limited(limited);
                self.subflows[i].flow.set_state(states[usize::from(limited)]);
            }
            6..=30 => {
                self.call(i, SEND, 0, &Ack::default());
            }
            _ => self.ack(i),
        }
    }
}

/// Parameters for one life: the defaults, or drawn from their ranges.
fn draw(info: &'static Info, random: &mut Stream) -> Params {
    let mut params = Params::new(info);
    for param in &info.params {
        let span = u64::from(param.most - param.least) + 1;
        match random.bits() % 6 {
            0 => params.set(param.name, param.least.into()).unwrap(),
            1 => params.set(param.name, param.most.into()).unwrap(),
            2 => params.set(param.name, u64::from(param.least) + random.bits() % span).unwrap(),
            _ => {}
        }
    }
    params
}

/// The defaults, with ImTCP-bg's rules for small paths switched off.
fn plain(info: &'static Info) -> Params {
    let mut params = Params::new(info);
    if params.value("small").is_ok() {
        params.set("small", 0).unwrap();
    }
    params
}

/// Differences in `calls` calls, and the first; `other` gives the kernel's parameters for a life with these natively.
fn compare<'a>(
    build: &'a TestBuild,
    info: &'static Info,
    calls: usize,
    other: impl Fn(&Params) -> Params,
) -> World<'a> {
    let mut random = Stream::new(7, info.name);
    let mut world = World {
        build,
        random: Stream::new(8, info.name),
        connection: Connection::new(),
        subflows: Vec::new(),
        now_us: 1_000_000,
        calls: 0,
        differences: 0,
        first: None,
    };
    let mut lives = 0;
    while world.calls < calls {
        let params = match lives % 4 {
            0 => Params::new(info),
            2 => plain(info),
            _ => draw(info, &mut random),
        };
        lives += 1;
        build.set(&other(&params));
        world.begin(&params);
        while world.calls < (lives * LIFE).min(calls) {
            world.step();
        }
    }
    world
}

#[test]
fn random_events_leave_the_same_bytes_in_the_kernel_and_natively() {
    if !able("bit equality with the kernel") {
        return;
    }
    for (i, info) in controllers_in_kernel().enumerate() {
        let start = Instant::now();
        let build = TestBuild::load(&Params::new(info), &format!("pcb{}_{i}", std::process::id()));
        let world = compare(&build, info, CALLS, Params::clone);
        println!(
            "{:<15} {} calls, {} differences, {} ms",
            info.name,
            world.calls,
            world.differences,
            start.elapsed().as_millis()
        );
        assert_eq!(world.differences, 0, "{}: {}", info.name, world.first.unwrap_or_default());
        // the comparison can fail: it does if the kernel starts with another threshold
        let control = compare(&build, info, CALLS / 10, |params| {
            let mut other = params.clone();
            let Ok(bytes) = params.value("initial_ssthresh_bytes") else {
                // one of PATHCAST_CONTROLLERS: with all that it has at an end
                for param in &info.params {
                    let end = if param.default == param.most { param.least } else { param.most };
                    other.set(param.name, end.into()).unwrap();
                }
                return other;
            };
            other.set("initial_ssthresh_bytes", if bytes == 9000 { 90_000 } else { 9000 }).unwrap();
            other
        });
        assert!(control.differences > 0, "{}: other parameters leave the same bytes", info.name);
    }
}
