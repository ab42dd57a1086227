//! A whole sequence of events replayed with one controller, for comparing it with another implementation.
//!
//! A sequence is one connection: rows of [`COLUMNS`] little-endian u64, one row an event of one subflow:
//!
//! | column | |
//! |---|---|
//! | 0 kind | 0 join, 1 ack, 2 ack and then grow, 3 loss, 4 recovered, 5 timeout, 6 undo, 7 first packet after silence, 8 idle, 9 send, 10 leave, 11 a timeout that no hook tells |
//! | 1 subflow | 0..15, the sequence's own number; a number may join again after it has left |
//! | 2 advance | us since the event before, of whatever subflow |
//! | 3 acked | packets; join: the first window; idle: RTOs of silence, each of which halves the window |
//! | 4 rtt, 5 one-way delay | of the ACK, us; 0: none; the second is one more than the delay |
//! | 6 in flight, 7 una, 8 nxt, 9 srtt, 10 rttvar, 11 limited, 12 state, 13 mss, 14 delivered, 15 lost | the view of `flow.h`; limited: 1 by the window, and 2 starved |
//!
//! The answer has a row of [`ANSWERS`] little-endian u64 for each event: cwnd, ssthresh, pace, burst, word 0, word 1 of its
//! subflow after it. The driver does what TCP does around the hooks: a loss sets ssthresh and leaves cwnd until `recovered`
//! sets it to ssthresh, unless it was undone; a timeout leaves a window of one packet; counted ACKs start anew at both; an
//! undo gives back the ssthresh of before, or 3/4 of the window of then if that is larger.

use crate::connection::Connection;
use crate::flow::{Ack, Event, Flow, State};
use crate::instance::Instance;
use crate::register::Params;

/// Numbers of a row of events, and of a row of the answer; the module says which.
pub const COLUMNS: usize = 16;
/// See [`COLUMNS`].
pub const ANSWERS: usize = 6;
/// Restart window of a flow that was silent (packet): RFC 5681 section 4.1 with the first window of RFC 6928.
const RESTART: u32 = 10;

/// Events that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Bytes are left over.
    #[error("events: {0} bytes are not rows of {COLUMNS} u64")]
    Length(usize),
    /// A row that means nothing where it stands.
    #[error("event {index}: {problem}")]
    Event {
        /// Its place, from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// Replays rows of [`COLUMNS`] numbers; the answer has a row of [`ANSWERS`] for each.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(params: &Params, events: &[u8]) -> Result<Vec<u8>, ReplayError> {
    let (rows, rest) = events.as_chunks::<{ 8 * COLUMNS }>();
    if !rest.is_empty() {
        return Err(ReplayError::Length(events.len()));
    }
    let mut driver = Driver { params, connection: Connection::new(), subflows: Default::default(), now_us: 0 };
    let mut answer = Vec::with_capacity(rows.len() * 8 * ANSWERS);
    for (index, row) in rows.iter().enumerate() {
        let (words, _) = row.as_chunks::<8>();
        let row = std::array::from_fn(|column| u64::from_le_bytes(words[column]));
        let after = driver.step(row).map_err(|problem| ReplayError::Event { index, problem })?;
        answer.extend(after.iter().flat_map(|word| word.to_le_bytes()));
    }
    Ok(answer)
}

struct Driver<'a> {
    params: &'a Params,
    connection: Connection,
    subflows: [Option<Subflow>; 16],
    now_us: u64,
}

struct Subflow {
    flow: Flow,
    instance: Instance,
    prior_ssthresh: u32,
    /// Whether the last reduction was.
    undone: bool,
}

impl Driver<'_> {
    fn step(&mut self, row: [u64; COLUMNS]) -> Result<[u64; ANSWERS], String> {
        let [kind, number, advance_us, ..] = row;
        let n = |column: usize| row[column] as u32;
        self.now_us += advance_us;
        let slot = self.subflows.get_mut(number as usize).ok_or_else(|| format!("no subflow {number}"))?;
        if kind == 0 {
            let mut subflow = Subflow {
                flow: Flow::new(n(13), n(3).max(1)),
                instance: Instance::new(self.params),
                prior_ssthresh: 0,
                undone: false,
            };
            see(&mut subflow.flow, self.now_us, &row)?;
            let Subflow { flow, instance, .. } = &mut subflow;
            flow.set_multipath(self.connection.group().joins > 0);
            self.connection.join(flow).ok_or("no slot is free")?;
            instance.init(flow);
            self.connection.deliver(flow);
            self.connection.meet(flow, false);
            return Ok(after(&slot.insert(subflow).flow));
        }
        let Subflow { flow, instance, prior_ssthresh, undone } =
            slot.as_mut().ok_or_else(|| format!("subflow {number} has not joined"))?;
        see(flow, self.now_us, &row)?;
        let ack = match n(5) {
            0 => Ack::new(n(3), n(4)),
            owd => Ack::new(n(3), n(4)).with_one_way_delay(owd - 1),
        };
        match kind {
            1 => instance.ack(flow, &ack),
            2 => {
                instance.ack(flow, &ack);
                self.connection.meet(flow, true);
                instance.grow(flow, &ack);
                self.connection.deliver(flow);
            }
            3 | 5 => {
                self.connection.meet(flow, false);
                *prior_ssthresh = flow.ssthresh.max((flow.cwnd >> 1) + (flow.cwnd >> 2));
                let ssthresh = instance.ssthresh(flow);
                flow.prior_cwnd = flow.cwnd;
                flow.ssthresh = ssthresh;
                flow.cwnd_cnt = 0;
                *undone = false;
                if kind == 5 {
                    instance.event(flow, Event::Timeout);
                    flow.cwnd = 1;
                    self.connection.meet(flow, false);
                }
            }
            4 => {
                if !*undone {
                    flow.cwnd = flow.ssthresh;
                }
                instance.event(flow, Event::Recovered);
                self.connection.meet(flow, false);
            }
            6 => {
                flow.cwnd = instance.undo(flow);
                flow.ssthresh = *prior_ssthresh;
                *undone = true;
            }
            7 => instance.event(flow, Event::TxStart),
            8 => {
                instance.event(flow, Event::Idle);
                // tcp_cwnd_restart of Linux
                flow.ssthresh = flow.ssthresh.max((flow.cwnd >> 1) + (flow.cwnd >> 2));
                flow.cwnd = (flow.cwnd >> n(3).min(31)).max(flow.cwnd.min(RESTART));
            }
            9 => instance.send(flow),
            10 => {
                self.connection.leave(flow);
                instance.release(flow);
                let last = after(flow);
                *slot = None;
                return Ok(last);
            }
            11 => (flow.cwnd, flow.cwnd_cnt) = (1, 0),
            _ => return Err(format!("no kind {kind}")),
        }
        Ok(after(flow))
    }
}

/// The view of the row.
fn see(flow: &mut Flow, now_us: u64, row: &[u64; COLUMNS]) -> Result<(), String> {
    let n = |column: usize| row[column] as u32;
    flow.now_us = now_us;
    (flow.in_flight, flow.una, flow.nxt) = (n(6), row[7], row[8]);
    (flow.srtt_us, flow.rttvar_us, flow.mss) = (n(9), n(10), n(13));
    (flow.delivered, flow.lost) = (n(14), n(15));
    flow.set_limited(row[11] & 1 != 0);
    flow.set_starved(row[11] & 2 != 0);
    flow.set_state(match row[12] {
        0 => State::Open,
        1 => State::Disorder,
        2 => State::Cwr,
        3 => State::Recovery,
        4 => State::Loss,
        other => return Err(format!("no state {other}")),
    });
    Ok(())
}

fn after(flow: &Flow) -> [u64; ANSWERS] {
    [flow.cwnd.into(), flow.ssthresh.into(), flow.pace_bytes_per_s, flow.burst.into(), flow.word[0], flow.word[1]]
}
