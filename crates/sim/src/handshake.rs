//! Opening connections and subflows, and closing them.

use pathcast_base::Nanos;
use pathcast_scenario::{End, Join, Scheduler};

use crate::conn::{ANY, Conn, ENDLESS, Owner};
use crate::observe::Observer;
use crate::packet::{Kind, NONE, Packet};
use crate::sim::{Alarm, Plan, Sim, Sub};
use crate::tcp::{Config, MAX_RETRIES, ReceiveBuffer, Receiver, SYN_RETRIES, Sender};

/// What a new connection is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub owner: Owner,
    /// Path of every subflow.
    pub paths: Vec<usize>,
    pub multipath: bool,
    /// The host that the data goes to.
    pub to: End,
    /// Index of the controller with its parameters.
    pub control: usize,
    /// Application bytes; none: without an end.
    pub bytes: Option<u64>,
    /// pathcast's own transfer: what a subflow is given follows its rule.
    pub steered: bool,
}

impl Config {
    /// Repetitions of the packet that a subflow waits for an answer to, before its wait is doubled.
    fn steady(&self, sub: &Sub) -> u32 {
        if sub.answered { 0 } else { self.steady_syns }
    }

    /// How long it waits [ns].
    fn wait(&self, sub: &Sub) -> u64 {
        let doubled = (sub.tries - 1).saturating_sub(self.steady(sub)).min(20);
        (self.initial_rto << doubled).min(self.max_rto.max(self.initial_rto))
    }
}

impl<O: Observer> Sim<O> {
    /// Opens a connection.
    pub(crate) fn connect(&mut self, wanted: &Wanted) -> u32 {
        let now = self.now;
        let index = self.free_conns.pop().unwrap_or_else(|| {
            self.conns.push(Conn::default());
            self.conns.len() as u32 - 1
        });
        let v6 = wanted.paths.iter().any(|&path| self.scenario.paths[path].ip == 6);
        let kind = usize::from(wanted.multipath) + 2 * usize::from(v6);
        let mss = u64::from(self.config.mss[kind]);
        let conn = &mut self.conns[index as usize];
        conn.reset(wanted.owner, wanted.multipath, kind, now);
        conn.send.mss = mss as u16;
        conn.control = wanted.control;
        conn.steered = wanted.multipath && wanted.paths.len() > 1 && self.config.steering.unwrap_or(wanted.steered);
        if self.config.autotuning {
            conn.receive.buffer = ReceiveBuffer::new(now, mss as u32, &self.config);
            if wanted.multipath {
                // our far end asks: the kernel's connection can stand still for ever when what came early fills the buffer
                conn.receive.buffer.ask();
            }
            conn.send.edge = u64::from(conn.receive.buffer.window(conn.receive.buffer.first(), 0));
        } else {
            conn.send.edge = self.config.fixed_window(mss);
            conn.send.written = ENDLESS;
        }
        conn.send.end = wanted.bytes.map_or(ENDLESS, |bytes| bytes.div_ceil(mss).max(1));
        conn.send.last = wanted.bytes.map_or(mss, |bytes| bytes - (bytes.div_ceil(mss).max(1) - 1) * mss) as u16;
        // the receiver opens what it fetches: only the client opens
        let sender_opens = wanted.to == End::Server;
        for (i, &path) in wanted.paths.iter().enumerate() {
            let sub = self.make_sub(index, path, wanted.to, wanted.control, sender_opens, i > 0);
            self.conns[index as usize].add(sub);
        }
        if self.config.join == Join::Together {
            self.conns[index as usize].joined = true;
            for i in 0..self.conns[index as usize].subs().len() {
                self.open(self.conns[index as usize].subs()[i]);
            }
        } else {
            self.open(self.conns[index as usize].subs()[0]);
        }
        index
    }

    fn make_sub(&mut self, conn: u32, path: usize, to: End, control: usize, sender_opens: bool, further: bool) -> u32 {
        let params = &self.setup.controls[control];
        let index = match self.free_subs.pop() {
            Some(index) => {
                self.senders[index as usize].reset(params);
                index
            }
            None => {
                self.subs.push(Sub::default());
                self.senders.push(Sender::new(params));
                self.receivers.push(Receiver::default());
                self.seat(self.subs.len() - 1);
                self.subs.len() as u32 - 1
            }
        };
        self.receivers[index as usize].reset(&self.config);
        self.receivers[index as usize].offered = self.conns[conn as usize].receive.buffer.first();
        let back = if to == End::Server { End::Client } else { End::Server };
        let most = self.most_segments(conn, back);
        self.senders[index as usize].offload(most);
        let generation = self.subs[index as usize].generation;
        self.subs[index as usize] = Sub {
            conn,
            generation,
            live: true,
            path: path as u32,
            forward: self.network.route(path, to),
            back: self.network.route(path, back),
            sender_opens,
            joins: further && self.config.join == Join::Handshake,
            ..Sub::default()
        };
        index
    }

    /// Most segments that the host at `end` hands over at once.
    fn most_segments(&self, conn: u32, end: End) -> u32 {
        let ahead = !self.conns[conn as usize].multipath || self.config.scheduler == Scheduler::Linux;
        let host = self.scenario.hosts.get(end);
        if self.config.offload && ahead { host.send_segments.unwrap_or(u32::MAX) } else { 1 }
    }

    /// The other subflows of a connection begin.
    pub(crate) fn join(&mut self, index: u32) {
        self.conns[index as usize].joined = true;
        for i in 1..self.conns[index as usize].subs().len() {
            self.open(self.conns[index as usize].subs()[i]);
        }
    }

    pub(crate) fn control_packet(&self, flow: u32, kind: Kind, to_receiver: bool) -> Packet {
        let sub = &self.subs[flow as usize];
        let conn = &self.conns[sub.conn as usize];
        let bytes = match kind {
            Kind::Syn | Kind::SynAck => self.config.syn_bytes + if conn.kind >= 2 { 20 } else { 0 },
            _ => self.config.header[conn.kind],
        };
        Packet {
            seq: 0,
            dsn: 0,
            stamp: self.now,
            hop: if to_receiver { sub.forward } else { sub.back },
            flow,
            extra: NONE,
            window: 0,
            bytes: bytes as u16,
            generation: sub.generation,
            kind,
            flags: 0,
        }
    }

    /// Sends the first packet of a handshake.
    pub(crate) fn open(&mut self, flow: u32) {
        self.ask(flow, Kind::Syn, 0);
    }

    /// The side that opens sends a packet of the handshake that wants an answer; `echo` is the stamp that it answers.
    fn ask(&mut self, flow: u32, kind: Kind, echo: u64) {
        let now = self.now;
        let sub = &mut self.subs[flow as usize];
        sub.asked = now;
        sub.tries += 1;
        let wait = self.config.wait(sub);
        let sender_opens = sub.sender_opens;
        let alarm = if sender_opens { Alarm::Sender } else { Alarm::Receiver };
        self.alarm(flow, alarm, now + wait);
        let mut packet = self.control_packet(flow, kind, sender_opens);
        packet.seq = echo;
        self.send(packet);
    }

    /// No answer in time.
    pub(crate) fn handshake_timer(&mut self, flow: u32) {
        let sub = &self.subs[flow as usize];
        if sub.tries == 0 {
            return; // it has not begun
        }
        let wait = self.config.wait(sub);
        if self.now < sub.asked + wait {
            let alarm = if sub.sender_opens { Alarm::Sender } else { Alarm::Receiver };
            self.alarm(flow, alarm, sub.asked + wait);
            return;
        }
        if sub.tries > SYN_RETRIES + self.config.steady(sub) {
            // the path is dead; another subflow may carry the connection
            let conn = sub.conn;
            if !self.conns[conn as usize].subs().iter().any(|&sub| self.subs[sub as usize].open) {
                self.fail(conn);
            } else if sub.tries <= MAX_RETRIES {
                self.subs[flow as usize].tries = MAX_RETRIES + 1;
                self.rest(flow);
            }
            return;
        }
        let kind = if sub.answered { Kind::Request } else { Kind::Syn };
        self.ask(flow, kind, 0);
    }

    pub(crate) fn receive_handshake(&mut self, packet: Packet) {
        let flow = packet.flow;
        let sub = &self.subs[flow as usize];
        let opens = sub.sender_opens;
        match packet.kind {
            Kind::Syn => {
                let mut answer = self.control_packet(flow, Kind::SynAck, !opens);
                answer.seq = packet.stamp; // echoed, for the opener's first RTT
                self.send(answer);
            }
            Kind::SynAck => {
                if sub.answered {
                    return;
                }
                let rtt_us = ((self.now - packet.seq) / 1000).max(1) as u32;
                let joins = sub.joins;
                let sub = &mut self.subs[flow as usize];
                sub.answered = true;
                sub.tries = 0;
                if !opens || joins {
                    let conn = sub.conn;
                    self.ask(flow, Kind::Request, packet.stamp);
                    if opens && self.config.autotuning {
                        self.push(conn); // the program has more room to write
                    }
                } else {
                    let mut third = self.control_packet(flow, Kind::Request, true);
                    third.seq = packet.stamp;
                    self.send(third);
                    self.opened(flow, rtt_us);
                }
            }
            Kind::Request => {
                if opens {
                    if sub.joins {
                        let mut confirm = self.control_packet(flow, Kind::Confirm, false);
                        confirm.seq = packet.stamp;
                        self.send(confirm);
                    }
                } else if !sub.open {
                    // since the SYN-ACK left; asked again it tells nothing
                    let rtt_us = if packet.seq == 0 { 0 } else { ((self.now - packet.seq) / 1000).max(1) as u32 };
                    self.opened(flow, rtt_us);
                }
            }
            Kind::Confirm if !sub.open => {
                let rtt_us = ((self.now - packet.seq) / 1000).max(1) as u32;
                self.opened(flow, rtt_us);
            }
            _ => {}
        }
    }

    /// The subflow may carry data.
    fn opened(&mut self, flow: u32, rtt_us: u32) {
        let now = self.now;
        let sub = &mut self.subs[flow as usize];
        let stood = sub.joined > 0;
        sub.open = true;
        sub.opened = now;
        sub.joined = if stood { sub.joined } else { now };
        let index = sub.conn;
        if stood {
            self.senders[flow as usize].succeed(&self.setup.controls[self.conns[index as usize].control]);
            let back = if self.receiver_end(flow) == End::Server { End::Client } else { End::Server };
            let most = self.most_segments(index, back);
            self.senders[flow as usize].offload(most);
        }
        let conn = &mut self.conns[index as usize];
        let group = if conn.multipath { Some(&mut conn.group) } else { None };
        self.senders[flow as usize].establish(now, conn.kind, rtt_us, &self.config, group);
        // a later subflow joins as backup until it is looked at
        let first = conn.subs()[0] == flow && !stood;
        self.senders[flow as usize].held = conn.steered && !first;
        self.senders[flow as usize].roomy = conn.steered;
        if conn.steered && first {
            let generation = conn.generation;
            self.plan(now + crate::steer::TICK, Plan::Steer(index, generation));
        }
        let conn = &mut self.conns[index as usize];
        let nth = conn.subs().iter().position(|&sub| sub == flow).unwrap_or(0) as u32;
        let of = if let Owner::Flow(owner) = conn.owner { Some((owner, nth)) } else { None };
        self.observer.opened(Nanos(now), flow, of);
        self.push(index);
    }

    /// A subflow has not been heard of for too long: it ends, and with the last one the connection.
    pub(crate) fn give_up(&mut self, index: u32, flow: u32) {
        let conn = &mut self.conns[index as usize];
        let (una, again, reinjects) = (conn.send.una, &mut conn.send.again, self.config.reinjection);
        self.senders[flow as usize].give_away(|dsn, sent| {
            if dsn >= una && (reinjects || !sent) {
                again.push_back((dsn, if sent { flow } else { ANY }));
            }
        });
        self.subs[flow as usize].open = false;
        self.subs[flow as usize].tries = MAX_RETRIES + 1;
        let group = if conn.multipath { Some(&mut conn.group) } else { None };
        self.senders[flow as usize].release(group);
        self.senders[flow as usize].grouped = false;
        let alive = conn.subs().iter().any(|&sub| self.subs[sub as usize].open);
        if alive {
            self.keep_of_last(index);
            self.rest(flow);
            self.push(index);
        } else {
            self.fail(index);
        }
    }

    /// While one subflow alone is open, nobody takes what it gave away: that would stand before what it is to send for others.
    /// Its own retransmissions bring it.
    pub(crate) fn keep_of_last(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let mut open = conn.subs().iter().copied().filter(|&sub| self.subs[sub as usize].open);
        if let (Some(last), None) = (open.next(), open.next()) {
            conn.send.again.retain(|&(_, of)| of != last);
            self.senders[last as usize].keep();
        }
    }

    /// Frees what a connection has used.
    pub(crate) fn close(&mut self, index: u32) {
        for i in 0..self.conns[index as usize].subs().len() {
            let flow = self.conns[index as usize].subs()[i];
            let conn = &mut self.conns[index as usize];
            let sub = &mut self.subs[flow as usize];
            if sub.open {
                let group = if conn.multipath { Some(&mut conn.group) } else { None };
                self.senders[flow as usize].release(group);
            }
            sub.live = false;
            sub.open = false;
            sub.generation = sub.generation.wrapping_add(1);
            self.free_subs.push(flow);
        }
        let conn = &mut self.conns[index as usize];
        conn.live = false;
        conn.generation = conn.generation.wrapping_add(1);
        self.free_conns.push(index);
    }
}
