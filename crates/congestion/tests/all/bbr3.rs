//! BBR version 3 on a pipe of constant rate: what no simulated link does to it (marks, spurious reductions), and the rules
//! at their edges.

use pathcast_congestion::{Ack, Event, Flow, Instance, Params, State, controller};

const STARTUP: u64 = 0;
const DOWN: u64 = 2;
const CRUISE: u64 = 3;
const REFILL: u64 = 4;
const UP: u64 = 5;
const MSS: u32 = 1000;
/// Of the pipe: a packet each millisecond.
const GAP_US: u64 = 1_000;
const RTT_US: u32 = 80_000;
/// Its rate [byte/s], and bandwidth times delay [packet].
const RATE: f64 = 1e6;
const BDP: u32 = 80;

/// A pipe with a queue: a packet is acknowledged each millisecond, and what pace and window allow is sent.
struct Pipe {
    flow: Flow,
    control: Instance,
    state: State,
    /// What the pace has allowed and was not sent [packet].
    credit: f64,
}

impl Pipe {
    fn new() -> Pipe {
        let mut flow = Flow::new(MSS, 10);
        (flow.now_us, flow.srtt_us, flow.in_flight) = (1_000_000, RTT_US, 10);
        let mut control = Instance::new(&Params::new(controller("bbr3").unwrap()));
        control.init(&mut flow);
        control.event(&mut flow, Event::TxStart);
        Pipe { flow, control, state: State::Open, credit: 0.0 }
    }
    fn in_phase(phase: u64) -> Pipe {
        let mut pipe = Pipe::new();
        pipe.until(phase);
        pipe
    }
    fn phase(&self) -> u64 {
        self.flow.word[0] & 7
    }
    fn bandwidth(&self) -> f64 {
        (self.flow.word[0] >> 3) as f64
    }
    fn set(&mut self, state: State) {
        self.state = state;
        self.flow.set_state(state);
    }
    fn ack(&mut self) {
        let Pipe { flow, control, .. } = self;
        flow.now_us += GAP_US;
        flow.una += u64::from(MSS);
        flow.delivered += 1;
        flow.in_flight -= 1;
        let ack = Ack::new(1, RTT_US.max(flow.in_flight * GAP_US as u32));
        control.ack(flow, &ack);
        if !matches!(self.state, State::Cwr | State::Recovery) {
            control.grow(flow, &ack);
        }
        control.send(flow);
        self.credit = (self.credit + flow.pace_bytes_per_s as f64 / RATE).min(3.0);
        let window = if self.state == State::Open { flow.cwnd } else { flow.window };
        let sent = (self.credit as u32).min(window.saturating_sub(flow.in_flight)).max(u32::from(flow.in_flight < 2));
        self.credit -= f64::from(sent);
        flow.in_flight += sent;
        flow.nxt = flow.una + u64::from(flow.in_flight * MSS);
    }
    fn acks(&mut self, n: u32) {
        (0..n).for_each(|_| self.ack());
    }
    fn until(&mut self, phase: u64) {
        for _ in 0..20_000 {
            self.ack();
            if self.phase() == phase {
                return;
            }
        }
        panic!("phase {phase} never came");
    }
    /// The application has nothing more: what is on its way comes back, then nothing for a while.
    fn rest(&mut self, us: u64) {
        let Pipe { flow, control, .. } = self;
        flow.set_starved(true);
        while flow.in_flight > 0 {
            flow.now_us += GAP_US;
            flow.una += u64::from(MSS);
            flow.delivered += 1;
            flow.in_flight -= 1;
            let ack = Ack::new(1, RTT_US);
            control.ack(flow, &ack);
            control.grow(flow, &ack);
        }
        flow.now_us += us;
        control.event(flow, Event::TxStart);
        flow.set_starved(false);
        flow.in_flight = 10;
        flow.nxt = flow.una + u64::from(10 * MSS);
    }
    /// So many packets are found lost.
    fn lose(&mut self, packets: u32) {
        if self.state == State::Open {
            self.control.ssthresh(&mut self.flow);
            self.set(State::Recovery);
        }
        self.flow.lost += packets;
    }
    /// A mark is seen.
    fn mark(&mut self) {
        self.control.ssthresh(&mut self.flow);
        self.set(State::Cwr);
    }
    fn recover(&mut self) {
        self.set(State::Open);
        self.control.event(&mut self.flow, Event::Recovered);
    }
}

#[test]
fn it_finds_the_rate_of_the_pipe_and_keeps_its_queue_empty() {
    let mut pipe = Pipe::in_phase(STARTUP);
    let first = f64::from(10 * MSS) * 1e6 / f64::from(RTT_US) * 2.77;
    assert!((pipe.flow.pace_bytes_per_s as f64 / first - 1.0).abs() < 0.01, "the first window in an RTT, times 2.77");
    pipe.until(CRUISE);
    assert!((pipe.bandwidth() / RATE - 1.0).abs() < 0.02, "{}", pipe.bandwidth());
    pipe.acks(200);
    assert!((pipe.flow.pace_bytes_per_s as f64 / pipe.bandwidth() - 0.99).abs() < 0.001, "1 % below the bandwidth");
    assert!((2 * BDP..2 * BDP + 12).contains(&pipe.flow.cwnd), "twice the product: {}", pipe.flow.cwnd);
    assert!(pipe.flow.in_flight <= BDP + 2, "{}", pipe.flow.in_flight);
}

#[test]
fn losses_while_cruising_lower_the_bounds_to_what_is_delivered_until_the_next_probe() {
    let mut pipe = Pipe::in_phase(CRUISE);
    pipe.acks(50);
    let before = pipe.flow.cwnd;
    pipe.lose(1);
    pipe.acks(2 * BDP);
    pipe.recover();
    pipe.ack();
    let (after, bandwidth) = (pipe.flow.cwnd, pipe.bandwidth());
    assert!(after < before && after >= BDP * 7 / 10, "{before} {after}");
    assert!(bandwidth > 0.95 * RATE, "what is delivered is no less: {bandwidth}");
    pipe.until(REFILL);
    pipe.acks(BDP);
    assert!(pipe.flow.cwnd > after, "a probe forgets it: {}", pipe.flow.cwnd);
}

#[test]
fn a_probe_that_loses_more_than_two_percent_ends_and_bounds_the_volume() {
    for (lost, ends) in [(1, false), (4, true)] {
        let mut pipe = Pipe::in_phase(UP);
        pipe.acks(BDP + 10); // so that ACKs of packets of the probe come
        assert_eq!(pipe.phase(), UP);
        let volume = pipe.flow.in_flight;
        pipe.lose(lost);
        pipe.ack();
        assert_eq!(pipe.phase() == DOWN, ends, "{lost} of {volume}");
        if ends {
            pipe.acks(BDP);
            pipe.recover();
            pipe.until(CRUISE);
            pipe.acks(BDP);
            // 15 % below what was in flight
            assert!(pipe.flow.cwnd < volume, "{} {volume}", pipe.flow.cwnd);
        }
    }
}

#[test]
fn a_round_with_marks_is_answered_once_and_ends_a_probe() {
    let mut pipe = Pipe::in_phase(CRUISE);
    pipe.acks(100);
    let in_flight = pipe.flow.in_flight;
    pipe.mark();
    pipe.acks(BDP + 5);
    let once = pipe.flow.window;
    assert!(
        (in_flight * 80 / 100..in_flight * 97 / 100).contains(&once),
        "85 % of a round, an eighth more at most: {in_flight} {once}"
    );
    pipe.acks(2 * BDP); // the same reduction still
    assert_eq!(pipe.flow.window, once);
    pipe.recover();

    let mut pipe = Pipe::in_phase(UP);
    pipe.acks(BDP);
    pipe.mark();
    pipe.ack();
    assert_eq!(pipe.phase(), DOWN);

    let mut pipe = Pipe::new();
    pipe.acks(20);
    assert_eq!(pipe.phase(), STARTUP);
    pipe.mark();
    pipe.acks(2 * BDP);
    assert_ne!(pipe.phase(), STARTUP);
}

#[test]
fn a_spurious_reduction_gives_back_the_bounds_and_the_probe() {
    let mut pipe = Pipe::in_phase(UP);
    pipe.acks(BDP + 10);
    let before = pipe.flow.cwnd;
    pipe.lose(6);
    pipe.acks(BDP / 2);
    assert_eq!(pipe.phase(), DOWN);
    let cwnd = pipe.control.undo(&mut pipe.flow);
    pipe.set(State::Open);
    assert!(cwnd >= before, "{before} {cwnd}");
    pipe.ack();
    assert_eq!(pipe.phase(), REFILL);
}

#[test]
fn after_a_timeout_the_window_comes_back_by_what_is_delivered() {
    let mut pipe = Pipe::in_phase(CRUISE);
    pipe.acks(50);
    let before = pipe.flow.cwnd;
    let ssthresh = pipe.control.ssthresh(&mut pipe.flow);
    assert_eq!(ssthresh, before);
    pipe.control.event(&mut pipe.flow, Event::Timeout);
    pipe.set(State::Loss);
    pipe.flow.cwnd = 1;
    for n in 2..6 {
        let ack = Ack::new(1, 0);
        pipe.control.grow(&mut pipe.flow, &ack);
        assert_eq!(pipe.flow.cwnd, n);
    }
    pipe.set(State::Open);
    pipe.control.grow(&mut pipe.flow, &Ack::new(1, 0));
    assert_eq!(pipe.flow.cwnd, before);
}

#[test]
fn what_a_starved_application_sends_lowers_no_bandwidth() {
    let mut pipe = Pipe::in_phase(CRUISE);
    let before = pipe.bandwidth();
    pipe.flow.set_starved(true);
    // a packet each 20 ms: 5 % of the rate, for longer than a cycle
    for _ in 0..400 {
        let Pipe { flow, control, .. } = &mut pipe;
        flow.now_us += 20 * GAP_US;
        flow.delivered += 1;
        flow.una += u64::from(MSS);
        flow.in_flight = 2;
        let ack = Ack::new(1, RTT_US);
        control.ack(flow, &ack);
        control.grow(flow, &ack);
        control.send(flow);
    }
    assert!(pipe.bandwidth() >= 0.99 * before, "{before} {}", pipe.bandwidth());
}

/// What was delivered before a rest is not taken for what came at once after it.
#[test]
fn a_flow_that_rests_again_and_again_keeps_its_window() {
    let mut pipe = Pipe::in_phase(CRUISE);
    for round in 0..60 {
        pipe.acks(300);
        assert!(pipe.flow.cwnd <= 3 * BDP, "{round}: {} packets", pipe.flow.cwnd);
        pipe.rest(50 * GAP_US);
    }
}

/// Times are kept modulo 72 minutes.
#[test]
fn rounds_go_on_after_a_rest_of_whatever_length_within_startup() {
    for minutes in [1, 35, 36, 50, 71, 72, 110] {
        let mut pipe = Pipe::in_phase(STARTUP);
        pipe.rest(minutes * 60_000_000);
        let begun = pipe.flow.now_us;
        pipe.until(DOWN);
        // within 5 s, after which a probe of the RTT would begin a round
        let took = pipe.flow.now_us - begun;
        assert!(took < 5_000_000, "after {minutes} minutes: {took} us");
    }
}
