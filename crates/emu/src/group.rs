//! One real-time thread for a group of links that packets share: it reads the devices, lets `pathcast-link` decide in
//! virtual time, and writes each packet when its modelled time has come.
//!
//! Departures chain from the model, not from wake-ups, so that a late wake-up delays the packets it releases but never
//! slows the link down. How late they were is counted per packet.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use pathcast_base::Nanos;
use pathcast_link::{Cross, CrossId, Link, LinkId, Mesh, Outcome, Params, RouteId};

use crate::error::EmuError;
use crate::histogram::Histogram;
use crate::ledger::GroupLedger;
use crate::packet::{LARGEST, Packet, Pair, Segment, VNET, pair, pool};
use crate::tun::Tun;

/// A packet may leave this much before its time, when sleeping until then would only make it late.
const EARLY: Nanos = Nanos::micros(20);
/// Frames read from one device before the others get their turn.
const READS: usize = 8;
/// Packets up to this size are copied out of the large buffer that they were read into.
const SMALL: usize = 4096;
/// Priority among real-time threads; any is above all ordinary ones.
const PRIORITY: libc::c_int = 10;

/// What a group is made of.
pub struct Plan {
    /// Directional links: parameters, name (`wan1/ab`), cross traffic with its start and stop.
    pub links: Vec<(Params, String, Vec<CrossPlan>)>,
    /// Directional routes: the links in order, and the device that packets leave by.
    pub routes: Vec<(Vec<LinkId>, usize)>,
    /// The route of each address pair.
    pub lookup: HashMap<Pair, RouteId>,
    /// The devices.
    pub devices: Vec<Tun>,
    /// Changes with their time since the start, in that order.
    pub changes: Vec<(Nanos, LinkId, Change)>,
    /// Seed of every random decision.
    pub seed: u64,
}

/// Cross traffic on one directional link.
pub struct CrossPlan {
    /// Its name in the scenario.
    pub name: String,
    /// What it sends.
    pub cross: Cross,
    /// Since the start of the network.
    pub start: Nanos,
    /// Since the start of the network; none: for ever.
    pub stop: Option<Nanos>,
}

/// A change that the scenario itself makes.
pub enum Change {
    /// The link's parameters.
    Params(Params),
    /// Cross traffic, by its name.
    Cross(String, Cross),
}

enum Order {
    Set(LinkId, Params),
    Ledger { reset: bool, reply: Sender<GroupLedger> },
    Stop,
}

/// A running group; dropped, its thread ends and its devices disappear.
pub struct Group {
    orders: Sender<Order>,
    bell: OwnedFd,
    thread: Option<JoinHandle<()>>,
    links: String,
}

impl Group {
    /// Starts the thread.
    pub fn start(plan: Plan) -> Result<Group, EmuError> {
        let failed = |e: io::Error| EmuError::Setup { what: "the emulator's thread".into(), why: e.to_string() };
        // SAFETY: eventfd returns a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: a descriptor that nobody else owns.
        let bell = unsafe { OwnedFd::from_raw_fd(fd) };
        let heard = bell.try_clone().map_err(failed)?;
        let (orders, inbox) = channel();
        let links = plan.links.iter().map(|l| l.1.as_str()).collect::<Vec<_>>().join(", ");
        let thread = std::thread::Builder::new()
            .name("pathcast-link".into())
            .spawn(move || Worker::new(plan).run(&inbox, heard.as_raw_fd()))
            .map_err(failed)?;
        Ok(Group { orders, bell, thread: Some(thread), links })
    }

    fn send(&self, order: Order) -> Result<(), EmuError> {
        self.orders.send(order).map_err(|_| self.gone())?;
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes from a live array; a full counter already wakes the thread.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), 8) };
        Ok(())
    }

    fn gone(&self) -> EmuError {
        EmuError::Thread { links: self.links.clone(), why: "it no longer answers".into() }
    }

    /// Changes a link from now on.
    pub fn set(&self, link: LinkId, params: Params) -> Result<(), EmuError> {
        self.send(Order::Set(link, params))
    }

    /// What the links did so far; `reset` starts the release errors afresh.
    pub fn ledger(&self, reset: bool) -> Result<GroupLedger, EmuError> {
        let (reply, answer) = channel();
        self.send(Order::Ledger { reset, reply })?;
        answer.recv_timeout(std::time::Duration::from_secs(5)).map_err(|_| self.gone())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.send(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was already printed by the thread
        }
    }
}

/// Monotonic time of this machine.
pub fn clock() -> Nanos {
    // SAFETY: clock_gettime fills the timespec.
    let t = unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t);
        t
    };
    Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// CPU time of the calling thread.
fn cpu_time() -> Nanos {
    // SAFETY: clock_gettime fills the timespec.
    let t = unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t);
        t
    };
    Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Asks for real-time scheduling, else for the best ordinary priority; true for the former.
fn become_urgent() -> bool {
    // SAFETY: these calls change only the calling thread's scheduling.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0, 0, 0);
        let parameter = libc::sched_param { sched_priority: PRIORITY };
        if libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) == 0 {
            return true;
        }
        libc::setpriority(libc::PRIO_PROCESS, 0, -19);
        false
    }
}

/// Segments of one packet that leave in one write.
struct Run {
    first: Segment,
    last: Segment,
    /// Due time of the first.
    due: Nanos,
    /// Due times of all.
    dues: Vec<Nanos>,
}

/// The end of a route.
struct Exit {
    device: usize,
    last_link: LinkId,
    chunk: Nanos,
    run: Option<Run>,
}

/// The way out: joins what may leave together, writes it and counts how late it was.
struct Release {
    devices: Vec<Tun>,
    exits: Vec<Exit>,
    spare: Vec<Vec<Nanos>>,
    head: Vec<u8>,
    errors: Histogram,
    failures: u64,
    writes: u64,
}

impl Release {
    fn arrived(&mut self, at: Nanos, route: RouteId, segment: Segment) {
        let index = route.0 as usize;
        let Exit { chunk, run, .. } = &mut self.exits[index];
        match run {
            Some(run) if run.last.joins(&segment) && at <= run.due + *chunk => {
                run.last = segment;
                run.dues.push(at);
            }
            _ => {
                self.flush(index);
                let mut dues = self.spare.pop().unwrap_or_default();
                dues.push(at);
                self.exits[index].run = Some(Run { first: segment.clone(), last: segment, due: at, dues });
            }
        }
    }

    fn flush(&mut self, route: usize) {
        let Some(Run { first, last, mut dues, .. }) = self.exits[route].run.take() else { return };
        let now = clock();
        for due in dues.drain(..) {
            self.errors.record(now.0.abs_diff(due.0));
        }
        self.spare.push(dues);
        let rest = first.run(&last, &mut self.head);
        self.writes += 1;
        if self.devices[self.exits[route].device].write(&self.head, &rest).is_err() {
            self.failures += 1;
        }
    }

    /// Writes the runs that nothing will join in time; returns when the first of the others must leave.
    fn flush_complete(&mut self, mesh: &Mesh<Segment>) -> Option<Nanos> {
        let mut next: Option<Nanos> = None;
        for route in 0..self.exits.len() {
            let exit = &self.exits[route];
            let Some(run) = &exit.run else { continue };
            let latest = run.due + exit.chunk;
            match mesh.upcoming(exit.last_link, RouteId(route as u32)) {
                Some((due, segment)) if due <= latest && run.last.joins(segment) => {
                    next = Some(next.map_or(latest, |n| n.min(latest)));
                }
                _ => self.flush(route),
            }
        }
        next
    }
}

struct Worker {
    mesh: Mesh<Segment>,
    release: Release,
    lookup: HashMap<Pair, RouteId>,
    changes: std::vec::IntoIter<(Nanos, LinkId, Change)>,
    next_change: Option<(Nanos, LinkId, Change)>,
    crosses: HashMap<String, CrossId>,
    names: Vec<String>,
    unroutable: u64,
    reads: u64,
    urgent: bool,
    start: Nanos,
}

impl Worker {
    fn new(plan: Plan) -> Worker {
        let start = clock();
        let mut cross_ids = HashMap::new();
        let names = plan.links.iter().map(|l| l.1.clone()).collect();
        let links = plan
            .links
            .into_iter()
            .map(|(params, name, crosses)| {
                let mut link = Link::new(params, plan.seed, &name);
                link.advance(start);
                for c in crosses {
                    let id = link.add_cross(&c.name, &c.cross, start + c.start, c.stop.map(|s| start + s));
                    cross_ids.insert(c.name, id);
                }
                link
            })
            .collect();
        let exits = plan.routes.iter().map(|(links, device)| Exit {
            device: *device,
            last_link: *links.last().expect("a path has a link"),
            chunk: Nanos::ZERO,
            run: None,
        });
        let exits = exits.collect();
        let mesh = Mesh::new(links, plan.routes.into_iter().map(|r| r.0).collect()).expect("checked by the scenario");
        let mut changes = plan.changes.into_iter();
        Worker {
            mesh,
            release: Release {
                devices: plan.devices,
                exits,
                spare: Vec::new(),
                head: Vec::new(),
                errors: Histogram::default(),
                failures: 0,
                writes: 0,
            },
            lookup: plan.lookup,
            next_change: changes.next(),
            changes,
            crosses: cross_ids,
            names,
            unroutable: 0,
            reads: 0,
            urgent: false,
            start,
        }
    }

    fn run(mut self, inbox: &Receiver<Order>, bell: RawFd) {
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
            self.apply_changes(now);
            self.step(now);
            self.mesh.release_early(now, EARLY, Segment::joins, &mut |at, route, segment| {
                self.release.arrived(at, route, segment);
            });
            let incomplete = self.release.flush_complete(&self.mesh);
            let ahead = self.mesh.next_wake(Segment::joins);
            let wake = ahead.into_iter().chain(incomplete).chain(self.change_time()).min();
            if !wait(&mut polled, wake) {
                continue;
            }
            for (device, slot) in polled[..bell_at].iter().enumerate() {
                if slot.revents & libc::POLLIN != 0 {
                    self.read(device);
                }
            }
            if polled[bell_at].revents & libc::POLLIN != 0 && !self.obey(inbox, bell) {
                return;
            }
        }
    }

    fn step(&mut self, now: Nanos) {
        let Worker { mesh, release, .. } = self;
        mesh.step(now, &mut |outcome| {
            if let Outcome::Arrived { at, route, packet } = outcome {
                release.arrived(at, route, packet);
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
            let Some(&route) = pair(&buffer[..n]).as_ref().and_then(|p| self.lookup.get(p)) else {
                self.unroutable += 1;
                pool::put(buffer);
                continue;
            };
            let packet = if n <= SMALL {
                let small = buffer[..n].into();
                pool::put(buffer);
                Packet::new(small, n)
            } else {
                Packet::new(buffer, n)
            };
            self.offer(route, &packet);
        }
    }

    fn offer(&mut self, route: RouteId, packet: &std::rc::Rc<Packet>) {
        let now = clock();
        self.step(now);
        let mut last = None;
        for index in 0..packet.segments() {
            let (segment, bytes) = Packet::segment(packet, index);
            if self.mesh.offer(now, route, bytes, segment).is_ok() {
                last = Some(index);
            }
        }
        if let Some(last) = last {
            packet.keep_up_to(last);
        }
    }

    fn change_time(&self) -> Option<Nanos> {
        self.next_change.as_ref().map(|c| self.start + c.0)
    }

    /// Applies the scenario's own changes exactly at their time, however late this thread is.
    fn apply_changes(&mut self, now: Nanos) {
        while let Some(at) = self.change_time().filter(|at| *at <= now) {
            self.step(at);
            let (_, link, change) = self.next_change.take().expect("it has a time");
            let link = self.mesh.link_mut(link);
            match change {
                Change::Params(params) => link.set(at, params),
                Change::Cross(name, cross) => link.set_cross(at, self.crosses[&name], &cross),
            }
            self.refresh_chunks();
            self.next_change = self.changes.next();
        }
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
                Order::Set(link, params) => {
                    self.mesh.link_mut(link).set(now, params);
                    self.refresh_chunks();
                }
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

    fn ledger(&mut self, now: Nanos) -> GroupLedger {
        let mut links = Vec::new();
        for (i, name) in self.names.iter().enumerate() {
            let link = self.mesh.link_mut(LinkId(i as u32));
            link.advance(now);
            links.push(crate::ledger::LinkLedger {
                name: name.clone(),
                params: link.params().clone(),
                counters: *link.counters(),
                backlog: link.backlog(now),
            });
        }
        GroupLedger {
            links,
            since_start_s: (now - self.start).as_secs_f64(),
            realtime: self.urgent,
            release_error: self.release.errors.summary(),
            cpu_s: cpu_time().as_secs_f64(),
            reads: self.reads,
            writes: self.release.writes,
            write_failures: self.release.failures,
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
