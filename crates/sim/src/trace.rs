//! Traces: windows and RTTs of subflows, queues of links, drops, as columns.

use pathcast_base::Nanos;
use pathcast_link::{Counters, Tally};

use crate::observe::Observer;
use crate::tcp::Sender;

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Numbers.
    Real(Vec<f64>),
}

/// A table: columns of equal length with their names.
pub type Table = Vec<(&'static str, Column)>;

#[derive(Clone, Copy, Debug)]
struct Window {
    at: u64,
    flow: u32,
    subflow: u32,
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    srtt_us: u32,
    state: u32,
    acked_bytes: u64,
    word: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    at: u64,
    wire: u32,
    packets: u64,
    bytes: u64,
    carried: u64,
    drops: u64,
}

/// What was traced.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    every: u64,
    windows: Vec<Window>,
    queues: Vec<Queue>,
    drops: Vec<(u64, u32, u32, u32)>,
    /// Flow, subflow and time of the last row of each subflow's slot.
    of: Vec<Option<(u32, u32, u64)>>,
}

/// How often links are looked at when every ACK is traced.
const LINKS: Nanos = Nanos(10_000_000);

impl Trace {
    /// A row of a subflow at most every `every`; zero: at every ACK.
    pub fn new(every: Nanos) -> Self {
        Trace { every: every.0, ..Trace::default() }
    }

    /// Rows of the flows' subflows: time [s], flow and subflow by index, window and threshold and what is in flight
    /// [packet], smoothed RTT [s], state (0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss), payload acknowledged [byte], and
    /// the first word that the controller publishes.
    pub fn windows(&self) -> Table {
        let w = &self.windows;
        let whole = |get: fn(&Window) -> u64| Column::Whole(w.iter().map(get).collect());
        vec![
            ("time_s", Column::Real(w.iter().map(|row| Nanos(row.at).as_secs_f64()).collect())),
            ("flow", whole(|row| row.flow.into())),
            ("subflow", whole(|row| row.subflow.into())),
            ("cwnd_packets", whole(|row| row.cwnd.into())),
            ("ssthresh_packets", whole(|row| row.ssthresh.into())),
            ("in_flight_packets", whole(|row| row.in_flight.into())),
            ("srtt_s", Column::Real(w.iter().map(|row| f64::from(row.srtt_us) / 1e6).collect())),
            ("state", whole(|row| row.state.into())),
            ("acked_bytes", whole(|row| row.acked_bytes)),
            ("control_word", whole(|row| row.word)),
        ]
    }

    /// Rows of links: time [s], direction of a link by index, waiting packets and bytes, and, summed up to then, bytes
    /// carried and packets dropped.
    pub fn queues(&self) -> Table {
        let q = &self.queues;
        let whole = |get: fn(&Queue) -> u64| Column::Whole(q.iter().map(get).collect());
        vec![
            ("time_s", Column::Real(q.iter().map(|row| Nanos(row.at).as_secs_f64()).collect())),
            ("link", whole(|row| row.wire.into())),
            ("queue_packets", whole(|row| row.packets)),
            ("queue_bytes", whole(|row| row.bytes)),
            ("carried_bytes", whole(|row| row.carried)),
            ("drops", whole(|row| row.drops)),
        ]
    }

    /// Rows of packets of flows that were dropped: time [s], direction of a link, flow and subflow, by index.
    pub fn drops(&self) -> Table {
        let d = &self.drops;
        let whole = |get: fn(&(u64, u32, u32, u32)) -> u64| Column::Whole(d.iter().map(get).collect());
        vec![
            ("time_s", Column::Real(d.iter().map(|row| Nanos(row.0).as_secs_f64()).collect())),
            ("link", whole(|row| row.1.into())),
            ("flow", whole(|row| row.2.into())),
            ("subflow", whole(|row| row.3.into())),
        ]
    }
}

impl Observer for Trace {
    const ON: bool = true;

    fn interval(&self) -> Option<Nanos> {
        Some(if self.every == 0 { LINKS } else { Nanos(self.every) })
    }

    fn opened(&mut self, now: Nanos, sub: u32, of: Option<(u32, u32)>) {
        let sub = sub as usize;
        if self.of.len() <= sub {
            self.of.resize(sub + 1, None);
        }
        // the first ACK is always a row
        self.of[sub] = of.map(|(flow, nth)| (flow, nth, now.0.saturating_sub(self.every)));
    }

    fn acked(&mut self, now: Nanos, sub: u32, sender: &Sender) {
        let Some(Some((flow, subflow, last))) = self.of.get_mut(sub as usize) else { return };
        if now.0 < *last + self.every {
            return;
        }
        *last = now.0;
        self.windows.push(Window {
            at: now.0,
            flow: *flow,
            subflow: *subflow,
            cwnd: sender.flow.cwnd,
            ssthresh: sender.flow.ssthresh,
            in_flight: sender.in_flight(),
            srtt_us: sender.rtt.srtt_us(),
            state: sender.state as u32,
            acked_bytes: sender.total().acked_bytes,
            word: sender.flow.word[0],
        });
    }

    fn dropped(&mut self, now: Nanos, wire: usize, sub: u32) {
        if let Some(Some((flow, subflow, _))) = self.of.get(sub as usize) {
            self.drops.push((now.0, wire as u32, *flow, *subflow));
        }
    }

    fn link(&mut self, now: Nanos, wire: usize, backlog: Tally, counters: &Counters) {
        let d = &counters.dropped;
        self.queues.push(Queue {
            at: now.0,
            wire: wire as u32,
            packets: backlog.packets,
            bytes: backlog.bytes,
            carried: counters.carried.bytes,
            drops: d.all().packets,
        });
    }
}
