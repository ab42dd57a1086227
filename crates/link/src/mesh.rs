//! A group of links and the routes over them, stepped in virtual time.

use pathcast_base::{Exit, Fault, Nanos};

use crate::flight::Inside;
use crate::{Cause, Refused, Tag, Wire};

/// A link of a mesh: its index in the list that the mesh was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A route of a mesh: its index in the list that the mesh was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// Links and routes that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// A route without links.
    #[error("route {route} has no link; a route needs at least one")]
    EmptyRoute {
        /// Index of the route.
        route: usize,
    },
    /// A route over a link that is not there.
    #[error("route {route} names link {link}; allowed: below {links}")]
    UnknownLink {
        /// Index of the route.
        route: usize,
        /// The wrong index.
        link: u32,
        /// How many links there are.
        links: usize,
    },
}

impl Fault for MeshError {
    fn code(&self) -> &'static str {
        "mesh-routes"
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Cross traffic waits so long at most to be drawn, where no packet asks for it.
const DRAWN: Nanos = Nanos::millis(100);

/// A packet on its way over a route; what the links of a mesh carry.
#[derive(Clone, Debug)]
pub struct Transit<T> {
    route: RouteId,
    hop: u32,
    tag: Tag,
    /// By a link before.
    marked: bool,
    packet: T,
}

impl<T> Inside<Transit<T>> {
    fn is_marked(&self) -> bool {
        self.marked || self.packet.marked
    }
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It reached the end of its route.
    Arrived {
        /// When, by the model.
        at: Nanos,
        /// Its route.
        route: RouteId,
        /// A link on the way marked it.
        marked: bool,
        /// The packet.
        packet: T,
    },
    /// It was lost on a wire, dropped from a queue after it had entered, or refused at a later link than the first.
    Dropped {
        /// When, by the model.
        at: Nanos,
        /// Where.
        link: LinkId,
        /// Why.
        cause: Cause,
        /// The packet.
        packet: T,
    },
}

/// A group of links and the routes over them. A driver calls [`Mesh::step`] up to a time before it offers packets, or
/// changes a link, at that time.
#[derive(Clone, Debug)]
pub struct Mesh<T> {
    links: Vec<Wire<Transit<T>>>,
    routes: Vec<Vec<LinkId>>,
    clock: Nanos,
    /// When all links were brought to one time last.
    advanced: Nanos,
}

impl<T> Mesh<T> {
    /// Routes are chains of links, from first to last; several routes may share a link.
    ///
    /// # Errors
    /// A route that is empty or names a link that is not there.
    pub fn new(links: Vec<Wire<Transit<T>>>, routes: Vec<Vec<LinkId>>) -> Result<Self, MeshError> {
        for (route, hops) in routes.iter().enumerate() {
            if hops.is_empty() {
                return Err(MeshError::EmptyRoute { route });
            }
            if let Some(&LinkId(link)) = hops.iter().find(|link| link.0 as usize >= links.len()) {
                return Err(MeshError::UnknownLink { route, link, links: links.len() });
            }
        }
        Ok(Mesh { links, routes, clock: Nanos::ZERO, advanced: Nanos::ZERO })
    }

    /// Offers a packet of `bytes` IP bytes to the first link of a route. All that is due before `now` must have been
    /// stepped.
    ///
    /// # Errors
    /// The packet, if the first link's queue does not take it.
    ///
    /// # Panics
    /// If there is no such route.
    pub fn offer(&mut self, now: Nanos, route: RouteId, bytes: u32, packet: T) -> Result<(), Refused<T>> {
        self.offer_tagged(now, route, bytes, Tag::default(), packet)
    }

    /// The same, of a packet of a flow, which perhaps can be marked.
    ///
    /// # Errors
    /// The packet, if the first link's queue does not take it.
    ///
    /// # Panics
    /// If there is no such route.
    pub fn offer_tagged(
        &mut self,
        now: Nanos,
        route: RouteId,
        bytes: u32,
        tag: Tag,
        packet: T,
    ) -> Result<(), Refused<T>> {
        debug_assert!(now >= self.clock, "{now} is before {}, which was stepped to", self.clock);
        debug_assert!(self.next_event().is_none_or(|(due, _)| due >= now), "step to {now} first");
        let first = self.routes[route.0 as usize][0];
        let transit = Transit { route, hop: 0, tag, marked: false, packet };
        self.links[first.0 as usize]
            .offer_tagged(now, bytes, tag, transit)
            .map_err(|refused| Refused { cause: refused.cause, packet: refused.packet.packet })
    }

    /// The earliest due time and its link, at equal times the lowest link.
    fn next_event(&self) -> Option<(Nanos, usize)> {
        self.links.iter().enumerate().filter_map(|(i, link)| Some((link.next_due()?, i))).min()
    }

    /// Makes all that happens up to `until`, `until` included, in time order (at equal times the lowest link first),
    /// and hands out what became of packets.
    pub fn step(&mut self, until: Nanos, out: &mut impl FnMut(Outcome<T>)) {
        while let Some((due, index)) = self.next_event().filter(|&(due, _)| due <= until) {
            // none: there was only a departure to decide
            let Some((released, cause)) = self.links[index].pop_cause(due) else { continue };
            let at = released.at;
            let Transit { route, hop, tag, marked, packet } = released.packet;
            let marked = marked || released.marked;
            if released.lost {
                out(Outcome::Dropped { at, link: LinkId(index as u32), cause, packet });
                continue;
            }
            let Some(&link) = self.routes[route.0 as usize].get(hop as usize + 1) else {
                out(Outcome::Arrived { at, route, marked, packet });
                continue;
            };
            let transit = Transit { route, hop: hop + 1, tag, marked, packet };
            if let Err(refused) = self.links[link.0 as usize].offer_tagged(at, released.bytes, tag, transit) {
                out(Outcome::Dropped { at, link, cause: refused.cause, packet: refused.packet.packet });
            }
        }
        self.clock = self.clock.max(until);
    }

    /// When a real-time driver should call [`Mesh::step`] next. A packet that goes on to another link wakes it at its
    /// due time. At the end of a route packets leave in runs: the wake-up is the due time of the last packet in the
    /// head's run, the packets right behind it of the same route, not lost, marked or not as it is, each joining the one before it, and due
    /// within the link's `chunk` of the head. A packet with no such followers wakes at its own due time. It wakes at
    /// [`Mesh::next_draw`] at the latest.
    pub fn next_wake(&self, joins: impl Fn(&T, &T) -> bool) -> Option<Nanos> {
        let mut wake = self.next_draw().map(|draw| draw.0);
        for link in &self.links {
            wake = wake.into_iter().chain(link.next_late()).min();
            let mut inside = link.inside();
            let Some(head) = inside.next() else {
                // a departure to decide, perhaps
                wake = wake.into_iter().chain(link.next_due().map(|due| due.0)).min();
                continue;
            };
            // a run ends no earlier than its head
            if wake.is_none_or(|wake| head.due < wake) {
                let end = self.run_end(head, inside, link.params().chunk.0, &joins);
                wake = Some(wake.map_or(end, |wake| wake.min(end)));
            }
        }
        wake.map(Nanos)
    }

    /// When a real-time driver should call [`Mesh::advance`] next, whatever packets do: else what comes first pays for all
    /// cross traffic since.
    pub fn next_draw(&self) -> Option<Nanos> {
        let next = self.links.iter().filter_map(Wire::next_cross).min()?;
        Some(next.max(self.advanced + DRAWN))
    }

    fn run_end<'a>(
        &self,
        head: &'a Inside<Transit<T>>,
        followers: impl Iterator<Item = &'a Inside<Transit<T>>>,
        chunk: u64,
        joins: impl Fn(&T, &T) -> bool,
    ) -> u64 {
        let Transit { route, hop, .. } = head.packet;
        let last_hop = hop as usize + 1 == self.routes[route.0 as usize].len();
        if head.lost || head.late || !last_hop {
            return head.due;
        }
        let latest = head.due.saturating_add(chunk);
        let mut last = head;
        for next in followers {
            let same = next.packet.route == route && next.packet.hop == hop;
            if next.lost
                || next.late
                || !same
                || next.is_marked() != head.is_marked()
                || next.due > latest
                || !joins(&last.packet.packet, &next.packet.packet)
            {
                break;
            }
            last = next;
        }
        last.due
    }

    /// Hands out, up to `slack` or half of the link's `chunk` early, what leaves at the end of routes (and whether it is
    /// marked): runs (see
    /// [`Mesh::next_wake`]) whose last packet is due by then and has left the serialiser by `now`. For a driver to which
    /// every waking is dear, and that could only be late otherwise. The mesh must have been stepped to `now`.
    pub fn release_early(
        &mut self,
        now: Nanos,
        slack: Nanos,
        joins: impl Fn(&T, &T) -> bool,
        out: &mut impl FnMut(Nanos, RouteId, bool, T),
    ) {
        for index in 0..self.links.len() {
            loop {
                let link = &self.links[index];
                let (chunk, delay) = (link.params().chunk.0, link.params().delay.0);
                let latest = now.0.saturating_add(slack.0.max(chunk / 2));
                let mut inside = link.inside();
                let Some(head) = inside.next() else { break };
                let last_hop = head.packet.hop as usize + 1 == self.routes[head.packet.route.0 as usize].len();
                if head.lost || head.late || !last_hop || head.due > latest {
                    break;
                }
                let end = self.run_end(head, inside, chunk, &joins);
                if link.next_late().is_some_and(|late| late <= end) {
                    break;
                }
                // what is in the serialiser may still be rescheduled; it is due no earlier than a delay after it
                if end > latest || end.saturating_sub(delay) > now.0 {
                    break;
                }
                while let Some(released) = self.links[index].pop_early(Nanos(end)) {
                    let marked = released.marked || released.packet.marked;
                    out(released.at, released.packet.route, marked, released.packet.packet);
                    if released.at.0 == end {
                        break;
                    }
                }
            }
        }
    }

    /// The next packet at the end of a link with its due time and whether it is marked, if it travels on `route` and is
    /// not lost.
    pub fn upcoming(&self, link: LinkId, route: RouteId) -> Option<(Nanos, bool, &T)> {
        let head = self.links[link.0 as usize].inside().next()?;
        (head.packet.route == route && !head.lost && !head.late).then_some((
            Nanos(head.due),
            head.is_marked(),
            &head.packet.packet,
        ))
    }

    /// Brings the counters of all links up to `now`, to which the mesh has been stepped.
    pub fn advance(&mut self, now: Nanos) {
        for link in &mut self.links {
            link.advance(now);
        }
        self.advanced = self.advanced.max(now);
    }

    /// All links, by index.
    pub fn links(&self) -> &[Wire<Transit<T>>] {
        &self.links
    }

    /// A link.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link(&self, id: LinkId) -> &Wire<Transit<T>> {
        &self.links[id.0 as usize]
    }

    /// A link, to change it or its cross traffic: step to that time first.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link_mut(&mut self, id: LinkId) -> &mut Wire<Transit<T>> {
        &mut self.links[id.0 as usize]
    }

    /// The links of a route.
    ///
    /// # Panics
    /// If there is no such route.
    pub fn route(&self, id: RouteId) -> &[LinkId] {
        &self.routes[id.0 as usize]
    }
}
