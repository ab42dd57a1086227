//! The way out of a group: joins what may leave together, writes it and counts how late it was.

use pathcast_base::Nanos;
use pathcast_link::{LinkId, Mesh, RouteId};

use crate::histogram::Histogram;
use crate::packet::Segment;
use crate::time::clock;
use crate::tun::{Layer, Tun};

/// Segments of one packet that leave in one write.
struct Run {
    first: Segment,
    last: Segment,
    /// Due time of the first.
    due: Nanos,
    /// Due times of all.
    dues: Vec<Nanos>,
    /// A link has marked them.
    marked: bool,
}

/// The end of a route.
pub struct Exit {
    pub device: usize,
    pub last_link: LinkId,
    pub chunk: Nanos,
    run: Option<Run>,
}

/// The way out: joins what may leave together, writes it and counts how late it was.
pub struct Release {
    pub devices: Vec<Tun>,
    pub exits: Vec<Exit>,
    spare: Vec<Vec<Nanos>>,
    head: Vec<u8>,
    pub errors: Histogram,
    pub failures: u64,
    pub writes: u64,
}

impl Release {
    /// Of routes that leave by a device over a last link.
    pub fn new(devices: Vec<Tun>, ends: impl Iterator<Item = (usize, LinkId)>) -> Release {
        let exit = |(device, last_link)| Exit { device, last_link, chunk: Nanos::ZERO, run: None };
        Release {
            devices,
            exits: ends.map(exit).collect(),
            spare: Vec::new(),
            head: Vec::new(),
            errors: Histogram::default(),
            failures: 0,
            writes: 0,
        }
    }

    /// Takes what has come to the end of its route; writes what it does not join.
    pub fn arrived(&mut self, at: Nanos, route: RouteId, marked: bool, segment: Segment) {
        let index = route.0 as usize;
        let Exit { chunk, run, .. } = &mut self.exits[index];
        match run {
            Some(run) if run.last.joins(&segment) && run.marked == marked && at <= run.due + *chunk => {
                run.last = segment;
                run.dues.push(at);
            }
            _ => {
                self.flush(index);
                let mut dues = self.spare.pop().unwrap_or_default();
                dues.push(at);
                self.exits[index].run = Some(Run { first: segment.clone(), last: segment, due: at, dues, marked });
            }
        }
    }

    fn flush(&mut self, route: usize) {
        let Some(Run { first, last, mut dues, marked, .. }) = self.exits[route].run.take() else { return };
        let now = clock();
        for due in dues.drain(..) {
            self.errors.record(now.0.abs_diff(due.0));
        }
        self.spare.push(dues);
        let device = self.exits[route].device;
        if self.devices[device].layer() == Layer::Switch && !first.pass_switches(&last) {
            first.up_to(&last).for_each(|one| self.write(device, &one, &one, marked));
        } else {
            self.write(device, &first, &last, marked);
        }
    }

    fn write(&mut self, device: usize, first: &Segment, last: &Segment, marked: bool) {
        let rest = first.run(last, marked, &mut self.head);
        self.writes += 1;
        if self.devices[device].write(&self.head, &rest).is_err() {
            self.failures += 1;
        }
    }

    /// Writes the runs that nothing will join in time; returns when the first of the others must leave.
    pub fn flush_complete(&mut self, mesh: &Mesh<Segment>) -> Option<Nanos> {
        let mut next: Option<Nanos> = None;
        for route in 0..self.exits.len() {
            let exit = &self.exits[route];
            let Some(run) = &exit.run else { continue };
            let latest = run.due + exit.chunk;
            match mesh.upcoming(exit.last_link, RouteId(route as u32)) {
                Some((due, marked, segment)) if due <= latest && marked == run.marked && run.last.joins(segment) => {
                    next = Some(next.map_or(latest, |n| n.min(latest)));
                }
                _ => self.flush(route),
            }
        }
        next
    }
}
