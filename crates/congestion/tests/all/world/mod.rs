//! A little world of one connection: subflows of constant RTT whose ACKs come one packet at a time.

use pathcast_congestion::{Ack, Connection, Event, Flow, Group, Instance, Params, State, controller};

#[derive(Clone)]
pub struct World {
    params: Params,
    connection: Connection,
    subflows: Vec<(Flow, Instance)>,
}

const MSS: u32 = 1448;
/// A millisecond in RTTs [us].
pub const MS: u32 = 1000;

/// Whether two numbers differ by at most a share of the second.
pub fn close(ours: f64, theirs: f64, share: f64) -> bool {
    (ours - theirs).abs() <= share * theirs.abs()
}

impl World {
    /// `subflows`: first window [packet] and RTT [us]; they join one after the other.
    pub fn new(control: &str, params: &[(&str, u64)], subflows: &[(u32, u32)]) -> Self {
        let mut values = Params::new(controller(control).unwrap());
        for &(name, value) in params {
            values.set(name, value).unwrap();
        }
        let mut world = World { params: values, connection: Connection::new(), subflows: Vec::new() };
        for &(cwnd, rtt) in subflows {
            world.join(cwnd, rtt);
        }
        world.report();
        world
    }
    pub fn set(&mut self, name: &str, value: u64) {
        self.params.set(name, value).unwrap();
        for (_, instance) in &mut self.subflows {
            instance.set_params(&self.params);
        }
    }
    pub fn join(&mut self, cwnd: u32, rtt_us: u32) {
        self.join_late(cwnd, rtt_us, 0);
    }
    /// So much later than the first.
    pub fn join_late(&mut self, cwnd: u32, rtt_us: u32, late_us: u64) {
        let mut flow = Flow::new(MSS, cwnd);
        flow.srtt_us = rtt_us;
        flow.now_us = 1_000_000 + late_us;
        let mut instance = Instance::new(&self.params);
        flow.set_multipath(!self.subflows.is_empty());
        self.connection.join(&mut flow).unwrap();
        instance.init(&mut flow);
        self.connection.deliver(&flow);
        self.connection.meet(&mut flow, false);
        flow.nxt = u64::from(flow.cwnd * MSS);
        flow.in_flight = flow.cwnd;
        self.subflows.push((flow, instance));
    }
    pub fn leave(&mut self, i: usize) {
        self.connection.leave(&self.subflows[i].0);
    }
    pub fn flow(&self, i: usize) -> &Flow {
        &self.subflows[i].0
    }
    pub fn flow_mut(&mut self, i: usize) -> &mut Flow {
        &mut self.subflows[i].0
    }
    /// A copy of one subflow, to be called without its connection.
    pub fn taken(&self, i: usize) -> (Flow, Instance) {
        self.subflows[i].clone()
    }
    pub fn group(&self) -> &Group {
        self.connection.group()
    }
    /// Everybody reports and hears of everybody.
    pub fn report(&mut self) {
        for _ in 0..2 {
            for (flow, _) in &mut self.subflows {
                self.connection.meet(flow, false);
            }
        }
    }
    /// The smoothed RTT and that of each sample [us].
    pub fn set_rtt(&mut self, i: usize, rtt_us: u32) {
        self.flow_mut(i).srtt_us = rtt_us;
    }
    pub fn wait(&mut self, i: usize, us: u64) {
        self.flow_mut(i).now_us += us;
    }
    pub fn event(&mut self, i: usize, event: Event) {
        let (flow, instance) = &mut self.subflows[i];
        instance.event(flow, event);
    }
    pub fn grow(&mut self, i: usize, ack: Ack) {
        let (flow, instance) = &mut self.subflows[i];
        self.connection.meet(flow, true);
        instance.grow(flow, &ack);
        self.connection.deliver(flow);
        self.connection.meet(flow, false);
    }
    pub fn ack_and_grow(&mut self, i: usize, ack: Ack) {
        let (flow, instance) = &mut self.subflows[i];
        flow.una += u64::from(ack.acked) * u64::from(MSS);
        instance.ack(flow, &ack);
        self.grow(i, ack);
        let flow = self.flow_mut(i);
        flow.nxt = flow.nxt.max(flow.una + u64::from(flow.cwnd) * u64::from(MSS));
        flow.in_flight = flow.cwnd;
    }
    /// `packets` ACKs of one packet each, in no time.
    pub fn acked(&mut self, i: usize, packets: u32) {
        self.acked_with(i, packets, self.flow(i).srtt_us);
    }
    pub fn acked_with(&mut self, i: usize, packets: u32, rtt_us: u32) {
        for _ in 0..packets {
            self.ack_and_grow(i, Ack::new(1, rtt_us));
        }
    }
    /// One window of data is acked, spread over one RTT.
    pub fn round(&mut self, i: usize) {
        let rtt = self.flow(i).srtt_us;
        self.round_of(i, |_| rtt);
    }
    /// The same with a sample of its own for each packet.
    pub fn round_of(&mut self, i: usize, rtt_us: impl Fn(u32) -> u32) {
        let (window, rtt) = (self.flow(i).cwnd, self.flow(i).srtt_us);
        for packet in 0..window {
            self.flow_mut(i).now_us += u64::from(rtt / window);
            self.ack_and_grow(i, Ack::new(1, rtt_us(packet)));
        }
        self.flow_mut(i).now_us += u64::from(rtt % window);
    }
    pub fn ssthresh(&mut self, i: usize) -> u32 {
        let (flow, instance) = &mut self.subflows[i];
        self.connection.meet(flow, false);
        instance.ssthresh(flow)
    }
    /// A loss, repaired at once.
    pub fn lose(&mut self, i: usize) {
        let ssthresh = self.ssthresh(i);
        let flow = self.flow_mut(i);
        flow.prior_cwnd = flow.cwnd;
        flow.ssthresh = ssthresh;
        flow.cwnd = ssthresh;
        self.event(i, Event::Recovered);
        let (flow, _) = &mut self.subflows[i];
        self.connection.meet(flow, false);
    }
    pub fn timeout(&mut self, i: usize) {
        let ssthresh = self.ssthresh(i);
        let flow = self.flow_mut(i);
        flow.prior_cwnd = flow.cwnd;
        flow.ssthresh = ssthresh;
        self.event(i, Event::Timeout);
        let flow = self.flow_mut(i);
        flow.set_state(State::Loss);
        flow.cwnd = 1;
        flow.cwnd_cnt = 0;
    }
    pub fn undo(&mut self, i: usize) -> u32 {
        let (flow, instance) = &mut self.subflows[i];
        instance.undo(flow)
    }
    /// The pace that a transmit opportunity is given [byte/s].
    pub fn pace(&mut self, i: usize) -> u64 {
        let (flow, instance) = &mut self.subflows[i];
        instance.send(flow);
        flow.pace_bytes_per_s
    }
    /// Packets acked for one packet of window, measured.
    pub fn need(&mut self, i: usize) -> f64 {
        let before = self.flow(i).cwnd;
        let mut acked = 0;
        self.flow_mut(i).cwnd_cnt = 0;
        while self.flow(i).cwnd == before {
            self.acked(i, 1);
            acked += 1;
            assert!(acked < 10_000_000);
        }
        f64::from(acked)
    }
}
