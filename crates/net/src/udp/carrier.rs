//! The thread's work at either end: packets leave at their times, what comes is read, and what has happened is told in order.
//!
//! The last [`SPIN`] before a packet is due are spent looking at the clock. While packets follow each other closely nothing
//! else is done, except for a little reading now and then: the kernel keeps what has come, with its stamps.

use std::collections::VecDeque;
use std::io;

use pathcast_base::Nanos;
use pathcast_measure::machine::{Batch, Reply, Train};

use super::clock::SessionClock;
use super::flights::{Flights, Lane};
use super::inbox::{Datagram, Inbox};
use super::receive::{AT_ONCE, ErrorQueueItem, Reader};
use super::socket::{Outgoing, Stamping, Target, UdpSocket};
use super::stamps::{Departure, Unstamped};
use super::urgency::sleep;
use crate::payload;

/// A thread that sleeps may wake so much late. No more: a real-time thread that turns all the time is stopped by the kernel for 50 ms
/// of every second.
const SPIN: Nanos = Nanos::micros(25);
/// Reading takes up to so long; it is put off when a packet is due before.
const READING: Nanos = Nanos::micros(30);
/// But not for longer than this.
const PUT_OFF: Nanos = Nanos::millis(2);
/// How long packets that follow each other closely keep what has happened from being told.
const UNTOLD: Nanos = Nanos::millis(10);
/// How often and how long at most a timer is put off until all that came before it has been told.
const CATCH_UP: (u32, Nanos) = (20, Nanos::millis(5));
/// Reads of one socket before anything else gets its turn.
const READS: usize = 8;
/// A packet that cannot be sent is tried again this often: the error may be one that an earlier packet met on its way.
const TRIES: usize = 2;
/// The largest IP packet [byte].
const LARGEST: usize = 65_535;

/// What a measurement's sockets did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that left.
    pub sent: u64,
    /// IP bytes of those.
    pub sent_bytes: u64,
    /// Of the packets sent, those whose stamp is the kernel's; the others' were taken just before they were handed to it.
    pub sent_stamped: u64,
    /// Packets that could not be sent.
    pub unsent: u64,
    /// Packets that came.
    pub received: u64,
    /// IP bytes of those.
    pub received_bytes: u64,
    /// Of the packets received, those whose stamp is the kernel's; the others' were taken when they were read.
    pub received_stamped: u64,
    /// Packets that came and found no room in the socket.
    pub missed: u64,
    /// Errors that sockets told: mostly packets that the network could not deliver.
    pub errors: u64,
    /// The last of them, as an error number of the system.
    pub last_error: Option<i32>,
}

impl Tally {
    /// What of the sockets may have made a measurement worse.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.received_stamped < self.received {
            notes.push(
                "this kernel does not stamp all packets that arrive: delays hold the waking of this process, too"
                    .into(),
            );
        }
        // the first is sent before it is known that stamps come
        let user = self.sent - self.sent_stamped;
        if user > 1 + self.sent / 50 {
            notes.push(format!("{user} of {} packets were stamped before they were handed to the kernel", self.sent));
        }
        if self.missed > 0 {
            notes.push(format!(
                "{} packets came that this host had no room for: it was too busy to read them, and they count as no loss",
                self.missed
            ));
        }
        if self.unsent > 0 {
            let why = self.last_error.map(|code| format!(" ({})", io::Error::from_raw_os_error(code)));
            notes.push(format!("{} packets could not be sent{}", self.unsent, why.unwrap_or_default()));
        }
        notes
    }
}

/// What has happened. `K` says whose a packet is.
pub(crate) enum CarrierEvent<K> {
    Sent { key: K, seq: u64, at: Nanos, handed: Nanos },
    Unsent { key: K, seq: u64 },
    Received { socket: usize, datagram: Datagram, batch: Batch },
}

/// A packet that has left, or never will.
struct Gone<K> {
    key: K,
    seq: u64,
    /// When it left, and when it was handed over.
    at: Option<(Nanos, Nanos)>,
}

/// What is kept ready for so many that are not told yet is given back when all are.
const READY: usize = 1024;

/// One socket and what is known of its packets.
struct Port<K> {
    socket: UdpSocket,
    unstamped: Unstamped<(K, u64)>,
    inbox: Inbox,
}

pub(crate) struct Carrier<K> {
    pub clock: SessionClock,
    pub tally: Tally,
    ports: Vec<Port<K>>,
    flights: Flights<K>,
    events: VecDeque<Gone<K>>,
    reader: Reader,
    polled: Vec<libc::pollfd>,
    /// When sockets were last read, and when last until nothing was left.
    read: Nanos,
    drained: Nanos,
    /// When last all had been events.
    all_told: Nanos,
    /// How often a timer was put off, and since when.
    put_off: (u32, Nanos),
}

impl<K: Clone + PartialEq> Carrier<K> {
    pub fn new(clock: SessionClock, sockets: Vec<UdpSocket>) -> Carrier<K> {
        payload::chunk(); // made now, not when the first packet is due
        let polled = sockets.iter().map(|s| libc::pollfd { fd: s.fd(), events: libc::POLLIN, revents: 0 }).collect();
        let port = |socket| Port { socket, unstamped: Unstamped::new(), inbox: Inbox::default() };
        Carrier {
            clock,
            tally: Tally::default(),
            ports: sockets.into_iter().map(port).collect(),
            flights: Flights::new(),
            events: VecDeque::new(),
            reader: Reader::new(),
            polled,
            read: Nanos::ZERO,
            drained: Nanos::ZERO,
            all_told: Nanos::ZERO,
            put_off: (0, Nanos::ZERO),
        }
    }

    /// Begins a train.
    pub fn launch(&mut self, key: K, socket: usize, to: Option<Target>, train: Train) {
        let lane = if train.beside { Lane::Beside } else { Lane::Path };
        self.flights.add(self.clock.now(), (key, lane), socket, to, train);
    }

    /// Says something at once.
    pub fn say(&mut self, key: K, socket: usize, to: Option<Target>, reply: Reply) {
        let now = self.clock.now();
        let Reply { path, seq, size, dscp, ecn, payload } = reply;
        let words = Train { ecn, heads: payload, ..Train::new(path, seq, now, Vec::new(), size).marked(dscp) };
        self.flights.add(now, (key, Lane::Words), socket, to, words);
    }

    /// Drops what is left of trains.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.flights.retain(keep);
    }

    /// Are there packets that have not left?
    pub fn busy(&self) -> bool {
        self.flights.due().is_some()
    }

    /// The next of what has happened.
    pub fn next_event(&mut self) -> Option<CarrierEvent<K>> {
        if let Some(Gone { key, seq, at }) = self.events.pop_front() {
            return Some(match at {
                Some((at, handed)) => CarrierEvent::Sent { key, seq, at, handed },
                None => CarrierEvent::Unsent { key, seq },
            });
        }
        if self.events.capacity() > READY {
            self.events.shrink_to(READY);
        }
        let ready = |port: &Port<K>| port.inbox.ready();
        let Some(socket) = self.ports.iter().position(ready) else {
            self.all_told = self.clock.now();
            return None;
        };
        let (datagram, batch) = self.ports[socket].inbox.take()?;
        self.tally.missed += u64::from(datagram.missed);
        Some(CarrierEvent::Received { socket, datagram, batch })
    }

    /// Takes back what was events, for its room.
    pub fn recycle(&mut self, socket: usize, datagram: Datagram) {
        self.ports[socket].inbox.recycle(datagram);
    }

    /// Has all been events that happened before `time`, which has passed? A timer that overtakes packets which wait to be read
    /// would take them for missing.
    pub fn caught_up(&mut self, time: Nanos) -> bool {
        let nothing_left = self.events.is_empty() && self.ports.iter().all(|port| port.inbox.is_empty());
        let now = self.clock.now();
        let (times, since) = &mut self.put_off;
        if *times == 0 {
            *since = now;
        }
        // counted too, because this thread may itself have been kept waiting
        let long = *times > CATCH_UP.0 && now > *since + CATCH_UP.1;
        let done = (self.drained >= time && nothing_left) || long;
        *times = if done { 0 } else { *times + 1 };
        done
    }

    /// Must something leave at once?
    pub fn pressed(&self) -> bool {
        self.flights.due().is_some_and(|due| due <= self.clock.now() + READING)
    }

    /// Must something leave before more is events? Not when too much has waited for too long: whoever is sent to without a pause
    /// would keep all others waiting.
    pub fn interrupts(&self) -> bool {
        self.pressed() && self.clock.now() <= self.all_told + UNTOLD
    }

    /// Sends what is due and reads what has come; sleeps if there is nothing, until `wake` at the latest.
    pub fn turn(&mut self, wake: Nanos) {
        let now = self.clock.now();
        if let Some(due) = self.flights.due().filter(|&due| due <= now + SPIN) {
            if due > now + READING || now > self.read + PUT_OFF {
                self.read_all(1);
            }
            while self.clock.now() < due {
                std::hint::spin_loop();
            }
            return self.send_due();
        }
        if self.read_all(READS) || !self.events.is_empty() || self.ports.iter().any(|port| port.inbox.ready()) {
            return;
        }
        let due = self.flights.due().map(|due| due - SPIN);
        let waits = self.ports.iter().flat_map(|port| [port.unstamped.until(), port.inbox.until()]);
        let until = waits.flatten().chain(due).fold(wake, Nanos::min);
        let now = self.clock.now();
        if until > now {
            sleep(&mut self.polled, until - now);
        }
    }

    /// Sends the packets that are due, as long as they follow each other without a pause; but not for ever.
    fn send_due(&mut self) {
        let end = self.clock.now() + PUT_OFF;
        loop {
            let now = self.clock.now();
            let Some(index) = self.flights.next_due(now).filter(|_| now <= end) else { return };
            let flight = self.flights.get(index);
            let (key, socket, to) = (flight.key.clone(), flight.socket, flight.to);
            let class = (flight.train.dscp, flight.train.ecn);
            let seq = flight.train.seq.wrapping_add(flight.next as u64);
            let size = flight.train.size.into();
            let head = flight.train.head(flight.next);
            let port = &self.ports[socket].socket;
            let bytes = (port.overhead() + head.len()).max(size);
            match hand_over(port, to, head, bytes, class) {
                Ok(()) => self.note_sent(socket, (key, seq), bytes, now),
                Err(error) => {
                    let head = head.to_vec();
                    self.try_again(socket, (key, seq), error, |port| {
                        hand_over(port, to, &head, bytes, class).map(|()| bytes)
                    });
                }
            }
            self.flights.advance(index, now);
        }
    }

    /// A packet has just been handed over; `own`: the time before.
    fn note_sent(&mut self, socket: usize, what: (K, u64), bytes: usize, own: Nanos) {
        let handed = self.clock.now();
        self.tally.sent += 1;
        self.tally.sent_bytes += bytes as u64;
        let port = &mut self.ports[socket];
        let left = if port.socket.stamping == Stamping::Both {
            port.unstamped.sent(what, own, handed)
        } else {
            Some(Departure::unstamped(what, own))
        };
        tell(&mut self.events, &mut self.tally, left);
    }

    /// An error that is not the packet's own is over when it has been told. What the kernel counted is not known after it,
    /// so that stamps are numbered anew.
    fn try_again(
        &mut self,
        socket: usize,
        (key, seq): (K, u64),
        mut error: io::Error,
        again: impl Fn(&UdpSocket) -> io::Result<usize>,
    ) {
        for _ in 0..TRIES {
            self.read_stamps(socket, usize::MAX);
            let port = &mut self.ports[socket];
            while let Some(left) = port.unstamped.give_up() {
                tell(&mut self.events, &mut self.tally, Some(left));
            }
            if port.socket.stamping == Stamping::Both && port.socket.number_stamps().is_ok() {
                port.unstamped.begin_anew();
            }
            if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM)) {
                break; // no room
            }
            let now = self.clock.now();
            match again(&port.socket) {
                Ok(bytes) => return self.note_sent(socket, (key, seq), bytes, now),
                Err(e) => error = e,
            }
        }
        self.tally.unsent += 1;
        self.events.push_back(Gone { key, seq, at: None });
    }

    /// Reads every socket, the stamps of what was sent first; true if there was something.
    fn read_all(&mut self, reads: usize) -> bool {
        self.clock.refresh();
        self.read = self.clock.now();
        let (mut some, mut drained) = (false, 0);
        for socket in 0..self.ports.len() {
            some |= self.read_stamps(socket, reads);
            let Self { clock, tally, ports, reader, read, .. } = self;
            let Port { socket, inbox, .. } = &mut ports[socket];
            let overhead = socket.overhead();
            for _ in 0..reads {
                if inbox.is_full() {
                    break;
                }
                let mut own = None; // all that are read together and have no stamp get the same
                let result = reader.packets(socket, AT_ONCE, |arrival| {
                    tally.received += 1;
                    tally.received_bytes += (arrival.payload.len() + overhead) as u64;
                    let stamp = arrival.stamp.and_then(|stamp| clock.of_kernel(stamp));
                    tally.received_stamped += u64::from(stamp.is_some());
                    inbox.add(&arrival, overhead, stamp.unwrap_or_else(|| *own.get_or_insert_with(|| clock.now())));
                });
                match result {
                    Ok(0) => {
                        inbox.settle(*read);
                        drained += 1;
                        break;
                    }
                    Ok(_) => some = true,
                    Err(error) => tally.fault(error.raw_os_error()),
                }
            }
        }
        if drained == self.ports.len() {
            self.drained = self.read;
        }
        some
    }

    fn read_stamps(&mut self, socket: usize, reads: usize) -> bool {
        let Self { clock, tally, ports, reader, events, .. } = self;
        let Port { socket, unstamped, .. } = &mut ports[socket];
        let mut some = false;
        for _ in 0..reads {
            let read = reader.told(socket, AT_ONCE, |told| match told {
                ErrorQueueItem::Departed { key, stamp } => {
                    let left = unstamped.stamped(key, clock.of_kernel(stamp));
                    tell(events, tally, left);
                }
                ErrorQueueItem::Error(number) => tally.fault(Some(number as i32)),
            });
            some |= read.as_ref().is_ok_and(|&read| read > 0);
            match read {
                Ok(AT_ONCE) => {}
                Ok(_) => break,
                Err(error) => {
                    tally.fault(error.raw_os_error());
                    break;
                }
            }
        }
        let now = clock.now();
        while let Some(left) = unstamped.overdue(now) {
            tell(events, tally, Some(left));
            some = true;
        }
        some
    }
}

/// Sends a packet of `bytes` IP bytes that begins with `head`.
fn hand_over(port: &UdpSocket, to: Option<Target>, head: &[u8], bytes: usize, (dscp, ecn): (u8, u8)) -> io::Result<()> {
    if bytes > LARGEST {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    let filling = &payload::chunk()[..bytes - port.overhead() - head.len()];
    port.send(&Outgoing { to, head, filling, dscp, ecn })
}

fn tell<K>(events: &mut VecDeque<Gone<K>>, tally: &mut Tally, left: Option<Departure<(K, u64)>>) {
    if let Some(Departure { what: (key, seq), at, handed, by_kernel }) = left {
        tally.sent_stamped += u64::from(by_kernel);
        events.push_back(Gone { key, seq, at: Some((at, handed)) });
    }
}

impl Tally {
    fn fault(&mut self, number: Option<i32>) {
        self.errors += 1;
        self.last_error = number.or(self.last_error);
    }
}
