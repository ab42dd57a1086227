//! How a connection is closed, as by Linux between programs that close at once. The sender's FIN rides on its last segment (of
//! Multipath TCP the DATA_FIN in its signal). The receiver acknowledges, reads to the end, and closes: a FIN of its own over
//! every subflow, which the sender answers (RFC 9293, section 3.6). A FIN without an answer is sent again after the timeout,
//! doubled each time, eight times (`tcp_orphan_retries`). The transfer itself is over before: with the last acknowledgement.

use crate::conn::Owner;
use crate::observe::Observer;
use crate::packet::{Kind, Packet};
use crate::sim::{Alarm, Sim};

/// Times that a FIN is sent again.
const RETRIES: u32 = 8;

/// The end of a subflow at its receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ending {
    /// FINs sent, when the next is due [ns], and whether one was answered.
    sent: u32,
    due: u64,
    answered: bool,
}

impl<O: Observer> Sim<O> {
    /// The receiver of the connection of `flow` has all: it closes every subflow.
    pub(crate) fn send_fins(&mut self, flow: u32) {
        let conn = self.subs[flow as usize].conn as usize;
        if !self.conns[conn].live {
            return;
        }
        for i in 0..self.conns[conn].subs().len() {
            let flow = self.conns[conn].subs()[i];
            if self.subs[flow as usize].open && self.subs[flow as usize].end.sent == 0 {
                self.send_fin(flow);
            }
        }
    }

    fn send_fin(&mut self, flow: u32) {
        let wait = self.senders[flow as usize].rtt.rto(&self.config);
        let end = &mut self.subs[flow as usize].end;
        end.due = self.now + (wait << end.sent.min(20)).min(self.config.max_rto);
        end.sent += 1;
        let due = end.due;
        self.alarm(flow, Alarm::Receiver, due);
        let mut fin = self.control_packet(flow, Kind::Fin, false);
        fin.seq = self.receivers[flow as usize].nxt;
        fin.dsn = self.conns[self.subs[flow as usize].conn as usize].receive.nxt;
        fin.stamp = 0; // it echoes nothing new
        self.send(fin);
    }

    /// The receiver's timer may be a FIN's.
    pub(crate) fn repeat_fin(&mut self, flow: u32) {
        let end = self.subs[flow as usize].end;
        if end.sent == 0 || end.answered {
            return;
        }
        if self.now < end.due {
            self.alarm(flow, Alarm::Receiver, end.due);
        } else if end.sent <= RETRIES {
            self.send_fin(flow);
        } else {
            self.ended(flow);
        }
    }

    /// Its receiver has not begun to close it.
    pub(crate) fn stands(&self, flow: u32) -> bool {
        self.subs[flow as usize].end.sent == 0
    }

    /// The sender gets a FIN.
    pub(crate) fn receive_fin(&mut self, packet: Packet) {
        let answer = self.control_packet(packet.flow, Kind::FinAck, true);
        self.send(answer);
        self.receive_ack(packet);
    }

    /// The receiver gets the answer.
    pub(crate) fn receive_fin_ack(&mut self, packet: Packet) {
        self.ended(packet.flow);
    }

    fn ended(&mut self, flow: u32) {
        self.subs[flow as usize].end.answered = true;
        let conn = self.subs[flow as usize].conn;
        if self.conns[conn as usize].closing {
            self.await_fins(conn);
        }
    }

    /// The stream is acknowledged: the connection goes when its subflows have ended.
    pub(crate) fn await_fins(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        conn.closing = true;
        conn.owner = Owner::Nobody; // what it has carried is counted
        let mut ends = self.conns[index as usize].subs().iter().map(|&flow| self.subs[flow as usize].end);
        if ends.all(|end| end.sent == 0 || end.answered) {
            self.close(index);
        }
    }
}
