//! Segments and ACKs between the two halves of a subflow, and whose turn it is to send.

use pathcast_base::Nanos;
use pathcast_scenario::{Join, Scheduler};

use crate::conn::ANY;
use crate::observe::Observer;
use crate::packet::{AGAIN, Blocks, CWR, DUPLICATE, ECE, ECT, Kind, LAST, NONE, Packet};
use crate::sim::{Alarm, Sim};
use crate::tcp::{Answer, BUFFER, Config, Expired, MAX_RETRIES, Sender};

/// Whether the subflow may send a new segment now.
#[inline]
fn has_room(sender: &Sender, now: u64, config: &Config) -> bool {
    sender.paced_until() <= now && sender.room(config) > 0
}

impl<O: Observer> Sim<O> {
    #[inline]
    pub(crate) fn receive_data(&mut self, packet: Packet) {
        let sub = &self.subs[packet.flow as usize];
        let conn = &mut self.conns[sub.conn as usize];
        let receiver = &mut self.receivers[packet.flow as usize];
        let (before, passed) = (receiver.nxt, conn.receive.nxt);
        if self.config.autotuning {
            // the far end asks again once a subflow has joined
            let first = conn.subs()[0] == packet.flow || conn.steered;
            let offered = conn.receive.buffer.arrive(receiver.offered, receiver.held(), first);
            receiver.offer(offered, &self.config);
        }
        let answer = receiver.receive(self.now, packet.seq, packet.stamp, packet.flags, &self.config);
        let after = receiver.nxt;
        if !conn.multipath {
            conn.receive.nxt = after;
        } else if after == before + 1 {
            conn.receive.accept(packet.dsn);
        } else {
            // what was behind the hole is handed up with it; the sender's board still has its places in the stream
            let sender = &self.senders[packet.flow as usize];
            for seq in before..after {
                let dsn = if seq == packet.seq { packet.dsn } else { sender.content(seq).0 };
                conn.receive.accept(dsn);
            }
        }
        if self.config.autotuning {
            self.read(packet.flow, packet.seq, packet.dsn, passed);
        }
        let conn = &self.conns[self.subs[packet.flow as usize].conn as usize];
        let complete = conn.receive.nxt >= conn.send.end && passed < conn.send.end;
        if complete {
            self.stream_complete(packet.flow);
        }
        match answer {
            Answer::Later => {
                let due = self.receivers[packet.flow as usize].due;
                self.alarm(packet.flow, Alarm::Receiver, due);
            }
            Answer::Now => self.send_ack(packet.flow, false),
            Answer::Duplicate => self.send_ack(packet.flow, true),
        }
        if complete && self.config.fin {
            self.send_fins(packet.flow);
        }
    }

    /// The receiver's program reads what has come in order; `passed`: what it had read before.
    fn read(&mut self, flow: u32, seq: u64, dsn: u64, passed: u64) {
        let Sim { conns, subs, senders, now, .. } = self;
        let conn = &mut conns[subs[flow as usize].conn as usize];
        // the kernel's receiver has an estimate of its own, of the same loop
        let longest = conn.subs().iter().map(|&sub| senders[sub as usize].rtt.srtt_us()).max().unwrap_or(0);
        let place = if conn.multipath { dsn } else { seq };
        let receive = &mut conn.receive;
        receive.last = receive.last.max(place + 1);
        if receive.nxt > passed {
            let beyond = if conn.multipath { 0 } else { receive.last - receive.nxt };
            receive.buffer.read(*now, receive.nxt - passed, beyond, longest);
        }
    }

    #[inline]
    pub(crate) fn send_ack(&mut self, flow: u32, duplicate: bool) {
        let sub = &self.subs[flow as usize];
        let conn = &mut self.conns[sub.conn as usize];
        let receiver = &mut self.receivers[flow as usize];
        let window = if !self.config.autotuning {
            0
        } else if conn.multipath {
            conn.receive.share(receiver.offered)
        } else {
            conn.receive.buffer.window(receiver.offered, receiver.held())
        };
        let mut bytes = self.config.ack[conn.kind];
        let mut extra = NONE;
        let told = receiver.acknowledge(duplicate, self.config.blocks[conn.kind]).filter(|_| self.config.sack);
        let blocks = told.map_or(0, |told| u32::from(told.len)) + u32::from(duplicate && self.config.dsack);
        if blocks > 0 {
            bytes += self.config.sack_header + 8 * blocks;
        }
        if told.is_some() || self.config.usec_timestamps {
            let sent_us = (self.now / 1000) as u32;
            extra = self.blocks.put(Blocks { sent_us, ..told.unwrap_or_default() });
        }
        let packet = Packet {
            seq: receiver.nxt,
            dsn: conn.receive.nxt,
            stamp: receiver.echo,
            hop: sub.back,
            flow,
            extra,
            window,
            bytes: bytes as u16,
            generation: sub.generation,
            kind: Kind::Ack,
            flags: if duplicate { DUPLICATE } else { 0 } | if receiver.echoes { ECE } else { 0 },
        };
        self.send(packet);
    }

    /// The receiver's timer: a held ACK, or the handshake of one who opens.
    pub(crate) fn receiver_timer(&mut self, flow: u32) {
        self.repeat_fin(flow);
        let sub = &self.subs[flow as usize];
        if !sub.live {
            return; // that was its end
        }
        if self.stands(flow) && !sub.sender_opens && self.receivers[flow as usize].arrived == 0 {
            self.handshake_timer(flow);
            return;
        }
        let receiver = &self.receivers[flow as usize];
        if receiver.due == 0 || !receiver.is_holding() {
            return;
        }
        if receiver.due > self.now {
            let due = receiver.due;
            self.alarm(flow, Alarm::Receiver, due);
        } else {
            self.send_ack(flow, false);
        }
    }

    #[inline]
    pub(crate) fn receive_ack(&mut self, packet: Packet) {
        let blocks = self.blocks.take(packet.extra);
        let index = self.subs[packet.flow as usize].conn;
        let conn = &mut self.conns[index as usize];
        let sender = &mut self.senders[packet.flow as usize];
        let group = if conn.multipath { Some(&mut conn.group) } else { None };
        sender.acknowledge(self.now, &packet, &blocks, &self.config, group);
        if O::ON {
            self.observer.acked(Nanos(self.now), packet.flow, sender);
        }
        let una = if conn.multipath { packet.dsn } else { sender.una };
        let progress = una > conn.send.una;
        conn.send.una = conn.send.una.max(una);
        if self.config.autotuning {
            let from = if conn.multipath { packet.dsn } else { packet.seq };
            conn.send.edge = conn.send.edge.max(from + u64::from(packet.window));
        } else {
            conn.send.edge = conn.send.una + self.config.fixed_window(u64::from(conn.send.mss));
        }
        let conn = &mut self.conns[index as usize];
        if conn.send.is_done() {
            self.finish(index);
            let conn = &self.conns[index as usize];
            if conn.live && conn.closing {
                self.push(index); // what a subflow still has out goes on being sent, and timed, until it is closed
            }
            return;
        }
        if progress && conn.multipath {
            self.run_data_timer(index, true);
        }
        let conn = &self.conns[index as usize];
        if conn.multipath && !conn.joined && conn.send.una > 0 && self.config.join == Join::Handshake {
            self.join(index);
        }
        self.push(index);
        let send = &self.conns[index as usize].send;
        if self.config.autotuning && send.written < send.end {
            self.senders[packet.flow as usize].expand_buffer(&self.config);
        }
    }

    /// Sends whatever a connection may send now.
    #[inline]
    pub(crate) fn push(&mut self, index: u32) {
        let conn = &self.conns[index as usize];
        if !conn.multipath {
            let sub = conn.subs()[0];
            self.push_plain(index, sub);
        } else {
            self.push_subflows(index);
        }
    }

    fn push_plain(&mut self, index: u32, flow: u32) {
        if !self.subs[flow as usize].open {
            return;
        }
        let now = self.now;
        let mut sent = false;
        if self.senders[flow as usize].tries_new && self.conns[index as usize].send.peek(flow).is_none() {
            self.senders[flow as usize].tried();
        }
        if self.config.autotuning {
            let (sender, out) = (&mut self.senders[flow as usize], &mut self.conns[index as usize].send);
            let mss = u64::from(out.mss);
            let each = sender.each(mss);
            out.write(sender.send_buffer(&self.config), each, BUFFER);
        }
        self.senders[flow as usize].ask_send(now, &self.config);
        loop {
            let sender = &mut self.senders[flow as usize];
            if !has_room(sender, now, &self.config) {
                let send = &self.conns[index as usize].send; // ns-3: part of a window does for a short last segment
                let short = send.next + 1 == send.end
                    && sender.fits_in_part(send.bytes_until(send.end) - send.bytes_until(send.next), &self.config);
                if !short {
                    sender.tried();
                    break;
                }
            }
            if sender.must_resend() {
                let Some(seq) = sender.resend(now, &self.config) else { break };
                self.send_segment(index, flow, seq, AGAIN);
            } else {
                let out = &mut self.conns[index as usize].send;
                if let Some(next) = out.peek(flow) {
                    if !sender.lets_go(now, out.waiting(), &self.config) {
                        if sender.tried() {
                            continue;
                        }
                        break;
                    }
                    let (dsn, bytes) = out.take(next);
                    let seq = sender.send_new(now, dsn, bytes, &self.config);
                    self.send_segment(index, flow, seq, 0);
                } else if let Some(seq) = sender.resend_doubtful(now, &self.config) {
                    self.send_segment(index, flow, seq, AGAIN);
                } else {
                    break;
                }
            }
            sent = true;
            self.senders[flow as usize].ask_again(now, &self.config);
        }
        self.senders[flow as usize].end_burst(now, &self.config);
        self.after_sending(index, flow, sent);
    }

    fn push_subflows(&mut self, index: u32) {
        let now = self.now;
        let mut sent = [false; 8];
        self.write(index);
        let count = self.conns[index as usize].subs().len();
        for (i, sent) in sent[..count].iter_mut().enumerate() {
            let flow = self.conns[index as usize].subs()[i];
            if !self.subs[flow as usize].open {
                continue;
            }
            self.senders[flow as usize].ask_send(now, &self.config);
            if self.senders[flow as usize].tries_new {
                let ahead = self.config.scheduler == Scheduler::Linux; // all that is its own is queued
                let none = ahead || self.conns[index as usize].send.peek(flow).is_none();
                if none && self.senders[flow as usize].queue.is_empty() {
                    self.senders[flow as usize].tried();
                }
            }
            loop {
                let sender = &mut self.senders[flow as usize];
                if !has_room(sender, now, &self.config) {
                    break;
                }
                let seq = if sender.must_resend() {
                    sender.resend(now, &self.config)
                } else if sender.queue.is_empty() && self.conns[index as usize].send.peek(flow).is_none() {
                    sender.resend_doubtful(now, &self.config)
                } else {
                    None
                };
                let Some(seq) = seq else { break };
                self.send_segment(index, flow, seq, AGAIN);
                *sent = true;
                self.senders[flow as usize].ask_again(now, &self.config);
            }
        }
        if self.config.scheduler == Scheduler::Linux {
            if self.config.data_timer && self.conns[index as usize].send.has_new() {
                self.set_data_timer(index);
            }
            self.queue_ahead(index);
            self.unwrite(index);
            self.push_queues(index, &mut sent);
            self.run_data_timer(index, false);
        }
        while self.config.scheduler != Scheduler::Linux {
            let Sim { conns, subs, senders, config, .. } = self;
            let conn = &mut conns[index as usize];
            // whoever has nothing to take but what was its own is passed over
            let stream = conn.send.has_new();
            let again = conn.send.again.front().map(|&(_, of)| of);
            if !stream && again.is_none() {
                break;
            }
            let scheduler: Scheduler = config.scheduler;
            let chosen = conn.choose(scheduler, |flow| {
                let sender = &senders[flow as usize];
                let able = subs[flow as usize].open
                    && (stream || again.is_some_and(|of| of != flow))
                    && !sender.must_resend()
                    && has_room(sender, now, config);
                able.then(|| sender.rtt.srtt_us())
            });
            let Some(flow) = chosen else { break };
            let Some(next) = conn.send.peek(flow) else {
                // what was to be sent again has arrived meanwhile
                if conn.send.again.is_empty() { break } else { continue }
            };
            let (dsn, bytes) = conn.send.take(next);
            let seq = senders[flow as usize].send_new(now, dsn, bytes, config);
            self.send_segment(index, flow, seq, 0);
            let i = self.conns[index as usize].subs().iter().position(|&sub| sub == flow);
            sent[i.unwrap_or(0)] = true;
            self.senders[flow as usize].ask_again(now, &self.config);
        }
        let mut again = false;
        for (i, &sent) in sent[..count].iter().enumerate() {
            let flow = self.conns[index as usize].subs()[i];
            if self.subs[flow as usize].open {
                again |= self.senders[flow as usize].tried();
                self.after_sending(index, flow, sent);
            }
        }
        if again {
            self.push_subflows(index);
        }
    }

    #[inline]
    pub(crate) fn send_segment(&mut self, index: u32, flow: u32, seq: u64, flags: u8) {
        let sub = &self.subs[flow as usize];
        let conn = &self.conns[index as usize];
        let (dsn, bytes) = self.senders[flow as usize].content(seq);
        let mut flags = flags | if dsn + 1 == conn.send.end { LAST } else { 0 };
        if self.config.ecn && flags & AGAIN == 0 {
            flags |= ECT; // never what is sent again (RFC 3168, section 6.1.5)
            if std::mem::take(&mut self.senders[flow as usize].answers_mark) {
                flags |= CWR;
            }
        }
        let bytes = u32::from(bytes) + self.config.header[conn.kind];
        let packet = Packet {
            seq,
            dsn,
            stamp: self.now,
            hop: sub.forward,
            flow,
            extra: NONE,
            window: 0,
            bytes: u16::try_from(bytes).expect("the scenario bounds `mss`"),
            generation: sub.generation,
            kind: Kind::Data,
            flags,
        };
        self.send(packet);
    }

    #[inline]
    fn after_sending(&mut self, index: u32, flow: u32, sent: bool) {
        let now = self.now;
        let sender = &mut self.senders[flow as usize];
        let send = &self.conns[index as usize].send;
        sender.after_sending(now, sent, send.written < send.end, &self.config);
        if sender.asks_send && sender.queue.is_empty() {
            let conn = &mut self.conns[index as usize];
            let ahead = conn.multipath && self.config.scheduler == Scheduler::Linux; // all that is its own is queued
            if ahead || conn.send.peek(flow).is_none() {
                sender.starve();
            }
        }
        let (deadline, paced) = (sender.deadline(), sender.paced_until());
        let waits = paced > now && (sender.must_resend() || sender.has_window(&self.config));
        if deadline != u64::MAX {
            self.alarm(flow, Alarm::Sender, deadline);
        }
        if waits {
            let send = &self.conns[index as usize].send;
            let sender = &self.senders[flow as usize];
            if send.next < send.end || sender.must_resend() || !send.again.is_empty() || !sender.queue.is_empty() {
                self.alarm(flow, Alarm::Pace, paced);
            }
        }
    }

    pub(crate) fn sender_timer(&mut self, flow: u32) {
        let now = self.now;
        let sub = &self.subs[flow as usize];
        if !sub.open {
            if sub.sender_opens {
                self.handshake_timer(flow);
            }
            return;
        }
        let index = sub.conn;
        let conn = &mut self.conns[index as usize];
        let group = if conn.multipath { Some(&mut conn.group) } else { None };
        match self.senders[flow as usize].expire(now, &self.config, group) {
            Expired::No => {
                let deadline = self.senders[flow as usize].deadline();
                if deadline != u64::MAX {
                    self.alarm(flow, Alarm::Sender, deadline);
                }
            }
            Expired::Lost => self.push(index),
            Expired::Probe => self.probe_tail(index, flow),
            Expired::Timeout(times) => {
                if times > MAX_RETRIES {
                    self.give_up(index, flow);
                    return;
                }
                let conn = &mut self.conns[index as usize];
                if conn.multipath && self.config.reinjection && !self.config.data_timer {
                    let (una, again) = (conn.send.una, &mut conn.send.again);
                    self.senders[flow as usize].give_away(|dsn, sent| {
                        if dsn >= una {
                            again.push_back((dsn, if sent { flow } else { ANY }));
                        }
                    });
                    self.keep_of_last(index);
                }
                self.push(index);
            }
        }
    }

    /// RFC 8985, section 7: a new segment if there is one, else the last again.
    fn probe_tail(&mut self, index: u32, flow: u32) {
        let now = self.now;
        let out = &mut self.conns[index as usize].send;
        let sender = &mut self.senders[flow as usize];
        let (mut again, mut sent) = (false, true);
        let queued = sender.queue.pop_front().map(|dsn| (dsn, out.bytes(dsn)));
        let ahead = self.config.scheduler == Scheduler::Linux && self.conns[index as usize].multipath;
        let out = &mut self.conns[index as usize].send;
        let next = queued.or_else(|| if ahead { None } else { out.peek(flow).map(|next| out.take(next)) });
        if let Some((dsn, bytes)) = next {
            let seq = sender.send_new(now, dsn, bytes, &self.config);
            self.send_segment(index, flow, seq, 0);
        } else if let Some(seq) = sender.resend_last(now, &self.config) {
            again = true;
            self.send_segment(index, flow, seq, AGAIN);
        } else {
            sent = false;
        }
        let sender = &mut self.senders[flow as usize];
        sender.probed(now, again, sent, &self.config);
        let deadline = sender.deadline();
        self.alarm(flow, Alarm::Sender, deadline);
    }
}
