//! The loop of a group's thread: read, let the links decide, release, sleep.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::mpsc::Receiver;

use pathcast_base::Nanos;
use pathcast_link::{CrossId, LinkId, LinkLedger, Mesh, Outcome, Params, RouteId, Tag, Wire};

use crate::histogram::Histogram;
use crate::ledger::GroupLedger;
use crate::orders::{Change, Order, Plan, Restart};
use crate::packet::{LARGEST, Packet, Pair, Segment, VNET, is_multicast, pair, pool};
use crate::release::Release;
use crate::time::{Awake, become_urgent, clock, cpu_time};
use crate::tun::Tun;

/// A packet may leave this much before its time, when sleeping until then would only make it late.
const EARLY: Nanos = Nanos::micros(20);
/// Frames read from one device before anything else gets its turn: each can hold 45 packets that others wait behind.
const READS: usize = 8;
/// Packets up to this size are copied out of the large buffer that they were read into.
const SMALL: usize = 4096;

/// What the thread of a group works on.
pub struct Worker {
    mesh: Mesh<Segment>,
    release: Release,
    lookup: HashMap<Pair, RouteId>,
    ingress: Vec<Option<RouteId>>,
    changes: std::vec::IntoIter<(Nanos, LinkId, Change)>,
    next_change: Option<(Nanos, LinkId, Change)>,
    crosses: HashMap<String, (LinkId, CrossId)>,
    names: Vec<String>,
    unroutable: u64,
    removed: u64,
    reads: u64,
    urgent: bool,
    awake: Awake,
    start: Nanos,
    restarted: Nanos, // no link is where it was before that
}

impl Worker {
    /// Starts the links' time.
    pub fn new(plan: Plan) -> Worker {
        let start = clock();
        let mut cross_ids = HashMap::new();
        let names = plan.links.iter().map(|l| l.1.clone()).collect();
        let links = plan
            .links
            .into_iter()
            .enumerate()
            .map(|(at, (params, name, crosses))| {
                let mut link = Wire::new(params, plan.seed, &name);
                link.begin(start);
                link.advance(start);
                for c in crosses {
                    let id = link.add_cross(&c.name, &c.cross, start + c.start, c.stop.map(|s| start + s));
                    cross_ids.insert(c.name, (LinkId(at as u32), id));
                }
                link
            })
            .collect();
        let ends = plan.routes.iter().map(|(links, device)| (*device, *links.last().expect("a path has a link")));
        let release = Release::new(plan.devices, ends);
        let mesh = Mesh::new(links, plan.routes.into_iter().map(|r| r.0).collect()).expect("checked by the scenario");
        let mut changes = plan.changes.into_iter();
        Worker {
            mesh,
            release,
            lookup: plan.lookup,
            ingress: plan.ingress,
            next_change: changes.next(),
            changes,
            crosses: cross_ids,
            names,
            unroutable: 0,
            removed: 0,
            reads: 0,
            urgent: false,
            awake: Awake::new(),
            start,
            restarted: start,
        }
    }

    /// Works until it is told to stop.
    pub fn run(mut self, inbox: &Receiver<Order>, bell: RawFd) {
        self.urgent = become_urgent();
        self.refresh_chunks();
        let mut polled: Vec<libc::pollfd> = self
            .release
            .devices
            .iter()
            .map(Tun::fd)
            .chain([bell])
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        let bell_at = polled.len() - 1;
        loop {
            let now = clock();
            self.step(now);
            if self.mesh.next_draw().is_some_and(|at| at <= now) {
                self.mesh.advance(now);
            }
            self.mesh.release_early(now, EARLY, Segment::joins, &mut |at, route, marked, segment| {
                self.release.arrived(at, route, marked, segment);
            });
            let incomplete = self.release.flush_complete(&self.mesh);
            let ahead = self.mesh.next_wake(Segment::joins);
            let wake = ahead.into_iter().chain(incomplete).chain(self.change_time()).chain(self.awake.rest(now)).min();
            if !wait(&mut polled, wake) {
                continue;
            }
            for (device, slot) in polled[..bell_at].iter_mut().enumerate() {
                if slot.revents & libc::POLLIN != 0 {
                    self.read(device);
                }
                if slot.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
                    // a removed device would be ready for ever
                    slot.fd = -1;
                    self.removed += 1;
                }
            }
            if polled[bell_at].revents & libc::POLLIN != 0 && !self.obey(inbox, bell) {
                return;
            }
        }
    }

    /// Brings all links to `now`, the scenario's own changes on the way at their time, however late this thread is; those that
    /// a restart found past at that.
    fn step(&mut self, now: Nanos) {
        while let Some(at) = self.change_time().filter(|at| *at <= now) {
            self.pass(at);
            self.change(at);
        }
        self.pass(now);
    }

    fn pass(&mut self, now: Nanos) {
        let Worker { mesh, release, .. } = self;
        mesh.step(now, &mut |outcome| {
            if let Outcome::Arrived { at, route, marked, packet } = outcome {
                release.arrived(at, route, marked, packet);
            }
        });
    }

    fn read(&mut self, device: usize) {
        for _ in 0..READS {
            let mut buffer = pool::take();
            debug_assert_eq!(buffer.len(), LARGEST);
            let Ok(Some(n)) = self.release.devices[device].read(&mut buffer) else {
                return pool::put(buffer);
            };
            if n <= VNET {
                pool::put(buffer);
                continue;
            }
            self.reads += 1;
            self.awake.traffic(clock());
            let found = match self.ingress[device] {
                Some(route) => (!is_multicast(&buffer[..n])).then_some(route),
                None => pair(&buffer[..n]).as_ref().and_then(|p| self.lookup.get(p)).copied(),
            };
            let Some(route) = found else {
                self.unroutable += 1;
                pool::put(buffer);
                continue;
            };
            let layer = self.release.devices[device].layer();
            let packet = if n <= SMALL {
                let small = buffer[..n].into();
                pool::put(buffer);
                Packet::new(small, n, layer)
            } else {
                Packet::new(buffer, n, layer)
            };
            self.offer(route, &packet);
        }
    }

    fn offer(&mut self, route: RouteId, packet: &std::rc::Rc<Packet>) {
        let now = clock();
        self.step(now);
        let tag = Tag { flow: packet.flow(), ect: packet.ect() };
        let mut last = None;
        for index in 0..packet.segments() {
            let (segment, bytes) = Packet::segment(packet, index);
            if self.mesh.offer_tagged(now, route, bytes, tag, segment).is_ok() {
                last = Some(index);
            }
        }
        if let Some(last) = last {
            packet.keep_up_to(last);
        }
    }

    fn change_time(&self) -> Option<Nanos> {
        self.next_change.as_ref().map(|c| (self.start + c.0).max(self.restarted))
    }

    fn change(&mut self, at: Nanos) {
        let Some((_, link, change)) = self.next_change.take() else { return };
        self.next_change = self.changes.next();
        let link = self.mesh.link_mut(link);
        match change {
            Change::Params(params) => link.set(at, params),
            Change::Cross(name, cross) => link.set_cross(at, self.crosses[&name].1, &cross),
        }
        self.refresh_chunks();
    }

    fn refresh_chunks(&mut self) {
        for exit in &mut self.release.exits {
            exit.chunk = self.mesh.link(exit.last_link).params().chunk;
        }
    }

    /// Carries out what was asked for; false to stop.
    fn obey(&mut self, inbox: &Receiver<Order>, bell: RawFd) -> bool {
        let mut count = [0u8; 8];
        // SAFETY: reads at most eight bytes into a live array.
        unsafe { libc::read(bell, count.as_mut_ptr().cast(), 8) };
        while let Ok(order) = inbox.try_recv() {
            let now = clock();
            self.step(now);
            match order {
                Order::Stop => return false,
                Order::Set { link, params, later } => self.set(now, link, params, later),
                Order::Restart(restart) => self.restart(now, restart),
                Order::Ledger { reset, reply } => {
                    let ledger = self.ledger(now);
                    if reset {
                        self.release.errors = Histogram::default();
                    }
                    let _ = reply.send(ledger); // whoever asked may have given up
                }
            }
        }
        true
    }

    /// `later`: what the changes of the link that are still to come bring, as in [`Order::Set`].
    fn set(&mut self, now: Nanos, link: LinkId, params: Params, mut later: Vec<Params>) {
        let coming = self.next_change.iter_mut().chain(self.changes.as_mut_slice());
        let of_link = coming.filter_map(|(_, of, change)| match change {
            Change::Params(params) if *of == link => Some(params),
            _ => None,
        });
        let mut of_link: Vec<&mut Params> = of_link.collect();
        while let Some(to) = of_link.pop() {
            let Some(new) = later.pop() else { break };
            *to = new;
        }
        // what is left has come meanwhile
        self.mesh.link_mut(link).set(now, later.pop().unwrap_or(params));
        self.refresh_chunks();
    }

    /// Cross traffic draws from the beginning of its streams again; losses go on in theirs.
    fn restart(&mut self, now: Nanos, restart: Restart) {
        for (_, (link, id)) in self.crosses.drain() {
            self.mesh.link_mut(link).remove_cross(now, id);
        }
        self.start = restart.at;
        self.restarted = now;
        for (at, (params, _, crosses)) in restart.links.into_iter().enumerate() {
            let id = LinkId(at as u32);
            let link = self.mesh.link_mut(id);
            link.set(now, params);
            link.begin(self.start);
            for c in crosses {
                let cross = link.add_cross(&c.name, &c.cross, self.start + c.start, c.stop.map(|s| self.start + s));
                self.crosses.insert(c.name, (id, cross));
            }
        }
        self.changes = restart.changes.into_iter();
        self.next_change = self.changes.next();
        self.refresh_chunks();
    }

    fn ledger(&mut self, now: Nanos) -> GroupLedger {
        let mut links = Vec::new();
        for (i, name) in self.names.iter().enumerate() {
            let link = self.mesh.link_mut(LinkId(i as u32));
            link.advance(now);
            links.push(LinkLedger {
                name: name.clone(),
                params: link.params().clone(),
                counters: *link.counters(),
                backlog: link.backlog(now),
            });
        }
        GroupLedger {
            links,
            since_start_s: now.saturating_sub(self.start).as_secs_f64(),
            realtime: self.urgent,
            processors_kept_awake: self.awake.allowed(),
            release_error: self.release.errors.summary(),
            cpu_s: cpu_time().as_secs_f64(),
            reads: self.reads,
            writes: self.release.writes,
            write_failures: self.release.failures,
            devices_removed: self.removed,
            unroutable: self.unroutable,
        }
    }
}

/// Sleeps until `wake` or until a descriptor is ready; true for the latter.
fn wait(polled: &mut [libc::pollfd], wake: Option<Nanos>) -> bool {
    let timeout = wake.map(|w| {
        let left = w.saturating_sub(clock());
        let left = if left <= EARLY { Nanos::ZERO } else { left };
        libc::timespec { tv_sec: (left.0 / 1_000_000_000) as _, tv_nsec: (left.0 % 1_000_000_000) as _ }
    });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), |t| t as *const _);
    // SAFETY: the slice and the timespec outlive the call.
    unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as _, pointer, std::ptr::null()) > 0 }
}
