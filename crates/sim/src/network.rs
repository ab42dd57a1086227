//! The links, and how packets go from one to the next.

use pathcast_base::Nanos;
use pathcast_link::{Counters, Cross, CrossId, Params, Released, Tag, Wire};
use pathcast_scenario::{Direction, End, Scenario, Source};

use crate::agenda::Agenda;
use crate::packet::{CE, ECT, Packet};

/// In the table of hops: the end of a route, at the host whose number is in the lower bits.
const HOST: u32 = 1 << 31;

/// Links by direction (`2 * link`, and one more for `ba`), the routes over them, and their agenda.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub wires: Vec<Wire<Packet>>,
    pub agenda: Agenda,
    hops: Vec<u32>,
    /// Start in the table of each path's hops to the server and to the client.
    routes: Vec<[u32; 2]>,
    /// Where each traffic of the scenario stands that is virtual.
    cross: Vec<Option<(usize, CrossId)>>,
    pub counts: Counts,
}

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Given to a first link.
    pub sent: u64,
    /// Arrived at a host.
    pub arrived: u64,
    /// Lost or dropped.
    pub dropped: u64,
    /// Carried over one link, summed over links.
    pub forwarded: u64,
}

/// What became of the packet at the head of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It went on to the next link, or none came out.
    Onward,
    /// It reached a host.
    Arrived(usize, Packet),
    /// It was dropped on this link.
    Dropped(usize, Packet),
}

/// Number of a host.
pub(crate) fn host(end: End) -> usize {
    match end {
        End::Client => 0,
        End::Server => 1,
    }
}

/// Index of one direction of a link.
pub(crate) fn wire(link: usize, direction: Direction) -> usize {
    2 * link + usize::from(direction == Direction::Ba)
}

impl Network {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut wires = Vec::new();
        for link in &scenario.links {
            for direction in Direction::BOTH {
                let name = format!("{}.{}", link.name, direction.name());
                wires.push(Wire::new(link.params(direction).clone(), scenario.seed, &name));
            }
        }
        let mut cross = Vec::new();
        for traffic in &scenario.traffic {
            let Source::Virtual { link, direction, cross: pattern } = &traffic.source else {
                cross.push(None);
                continue;
            };
            let wire = wire(*link, *direction);
            cross.push(Some((wire, wires[wire].add_cross(&traffic.name, pattern, traffic.start, traffic.stop))));
        }
        let (mut hops, mut routes) = (Vec::new(), Vec::new());
        for path in &scenario.paths {
            routes.push([End::Server, End::Client].map(|to| {
                let start = hops.len() as u32;
                hops.extend(path.hops_to(to).iter().map(|hop| wire(hop.link, hop.direction) as u32));
                hops.push(HOST | host(to) as u32);
                start
            }));
        }
        Network { agenda: Agenda::new(wires.len()), wires, hops, routes, cross, counts: Counts::default() }
    }

    /// Where a packet over `path` to `to` starts.
    pub(crate) fn route(&self, path: usize, to: End) -> u32 {
        self.routes[path][usize::from(to == End::Client)]
    }

    /// Packets on or waiting for links.
    pub(crate) fn inside(&self) -> u64 {
        self.wires.iter().map(|wire| wire.len() as u64).sum()
    }

    /// A host sends a packet; `hop` says over which route. Gives back what a link dropped for it.
    #[inline]
    pub(crate) fn send(&mut self, now: u64, packet: Packet) -> Option<(usize, Packet)> {
        self.counts.sent += 1;
        let wire = self.hops[packet.hop as usize] as usize;
        self.offer(now, wire, packet)
    }

    #[inline]
    fn offer(&mut self, now: u64, index: usize, packet: Packet) -> Option<(usize, Packet)> {
        let wire = &mut self.wires[index];
        let tag = Tag { flow: packet.flow, ect: packet.flags & ECT != 0 };
        let dropped = wire.offer(Nanos(now), u32::from(packet.bytes), tag, packet);
        if let Some(due) = wire.due_if_changed(now) {
            self.agenda.set(index, due);
        }
        dropped.map(|packet| {
            self.counts.dropped += 1;
            (index, packet)
        })
    }

    /// Takes what is due at link `index` one link further.
    #[inline]
    pub(crate) fn step(&mut self, now: u64, index: usize) -> Step {
        let wire = &mut self.wires[index];
        let released = wire.pop(Nanos(now));
        self.agenda.set(index, wire.due(now));
        let Some(Released { lost, marked, mut packet, .. }) = released else { return Step::Onward };
        if lost {
            self.counts.dropped += 1;
            return Step::Dropped(index, packet);
        }
        self.counts.forwarded += 1;
        if marked {
            packet.flags |= CE;
        }
        packet.hop += 1;
        let next = self.hops[packet.hop as usize];
        if next & HOST != 0 {
            self.counts.arrived += 1;
            return Step::Arrived((next & !HOST) as usize, packet);
        }
        match self.offer(now, next as usize, packet) {
            None => Step::Onward,
            Some((index, packet)) => Step::Dropped(index, packet),
        }
    }

    /// What one direction of a link has done so far.
    pub(crate) fn counters(&mut self, now: u64, index: usize) -> Counters {
        self.wires[index].advance(Nanos(now));
        self.agenda.set(index, self.wires[index].due(now));
        *self.wires[index].counters()
    }

    /// New parameters of one direction of a link.
    pub(crate) fn set(&mut self, now: u64, index: usize, params: Params) {
        self.wires[index].set(Nanos(now), params);
        self.agenda.set(index, self.wires[index].due(now));
    }

    /// Other random numbers on all links from now on.
    pub(crate) fn reseed(&mut self, now: u64, seed: u64) {
        for (index, wire) in self.wires.iter_mut().enumerate() {
            wire.reseed(Nanos(now), seed);
            self.agenda.set(index, wire.due(now));
        }
    }

    /// New values of virtual traffic, by its index in the scenario.
    pub(crate) fn set_cross(&mut self, now: u64, traffic: usize, cross: &Cross) {
        if let Some((wire, id)) = self.cross[traffic] {
            self.wires[wire].set_cross(Nanos(now), id, cross);
        }
    }
}
