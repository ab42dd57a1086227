//! Routes over shared links: composition, sharing, ties, drops on the way, and when a real-time driver wakes.

use pathcast_base::{Bytes, Fault, Nanos, Rate, Stream};
use pathcast_link::{
    Cause, Codel, Cross, LinkId, Mesh, MeshError, Outcome, Params, Queue, RouteId, Tag, Transit, Wire,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn link<T>(name: &str, mbit: u64, queue: u32, delay_ms: u64) -> Wire<T> {
    let rate = (mbit > 0).then_some(Rate(mbit * 1_000_000));
    let params = Params { rate, queue: Queue::Packets(queue), delay: Nanos::millis(delay_ms), ..Params::default() };
    Wire::new(params, 1, name)
}

fn mesh(links: Vec<Wire<Transit<u32>>>, routes: &[&[u32]]) -> Mesh<u32> {
    Mesh::new(links, routes.iter().map(|r| r.iter().map(|&l| LinkId(l)).collect()).collect()).unwrap()
}

fn stepped(mesh: &mut Mesh<u32>, until: u64) -> Vec<Outcome<u32>> {
    let mut out = Vec::new();
    mesh.step(Nanos(until), &mut |outcome| out.push(outcome));
    out
}

fn arrived(at: u64, route: u32, packet: u32) -> Outcome<u32> {
    Outcome::Arrived { at: Nanos(at), route: RouteId(route), marked: false, packet }
}

#[test]
fn routes_that_do_not_fit_are_refused() {
    let new = |route: Vec<LinkId>| Mesh::<u32>::new(vec![link("a", 1, 1, 1)], vec![vec![LinkId(0)], route]);
    assert_eq!(new(vec![]).unwrap_err(), MeshError::EmptyRoute { route: 1 });
    let error = new(vec![LinkId(0), LinkId(1)]).unwrap_err();
    assert_eq!(error, MeshError::UnknownLink { route: 1, link: 1, links: 1 });
    assert_eq!(error.to_string(), "route 1 names link 1; allowed: below 1");
    assert_eq!(error.code(), "mesh-routes");
}

#[test]
fn two_routes_share_a_bottleneck() {
    // two access links of 1 and 2 ms, one bottleneck of 1 ms a packet
    let links = vec![link("a", 0, 0, 1), link("b", 0, 0, 2), link("shared", 12, 10, 5)];
    let mut mesh = mesh(links, &[&[0, 2], &[1, 2]]);
    for i in 0..3 {
        mesh.offer(Nanos(0), RouteId(0), 1500, i).unwrap();
        mesh.offer(Nanos(0), RouteId(1), 1500, 10 + i).unwrap();
    }
    let expected: Vec<_> = [(0, 0), (0, 1), (0, 2), (1, 10), (1, 11), (1, 12)]
        .iter()
        .zip(2u64..)
        .map(|(&(route, packet), ms)| arrived((ms + 5) * MS, route, packet))
        .collect();
    assert_eq!(stepped(&mut mesh, 100 * MS), expected);
    assert_eq!(mesh.link(LinkId(2)).counters().carried.packets, 6);
}

#[test]
fn drops_on_the_way_are_reported_where_and_when() {
    let mut lossy = link("lossy", 0, 0, 1);
    lossy.set(Nanos(0), Params { loss: 1.0.into(), ..lossy.params().clone() });
    let mut mesh = mesh(vec![link("a", 0, 0, 3), link("narrow", 12, 1, 0), lossy], &[&[0, 1], &[2, 0]]);
    for i in 0..4 {
        mesh.offer(Nanos(0), RouteId(0), 1500, i).unwrap();
    }
    mesh.offer(Nanos(0), RouteId(1), 1500, 9).unwrap();
    let dropped = |at, link, cause, packet| Outcome::Dropped { at: Nanos(at), link: LinkId(link), cause, packet };
    let expected = [
        dropped(MS, 2, Cause::Loss, 9),
        dropped(3 * MS, 1, Cause::Queue, 2),
        dropped(3 * MS, 1, Cause::Queue, 3),
        arrived(4 * MS, 0, 0),
        arrived(5 * MS, 0, 1),
    ];
    assert_eq!(stepped(&mut mesh, 100 * MS), expected);
}

#[test]
fn equal_times_go_by_the_lowest_link() {
    let mut mesh = mesh(vec![link("a", 0, 0, 1), link("b", 0, 0, 1)], &[&[1], &[0]]);
    mesh.offer(Nanos(0), RouteId(0), 1500, 1).unwrap();
    mesh.offer(Nanos(0), RouteId(1), 1500, 2).unwrap();
    assert_eq!(stepped(&mut mesh, MS), [arrived(MS, 1, 2), arrived(MS, 0, 1)]);
}

#[test]
fn links_can_be_changed_and_loaded() {
    let mut mesh = mesh(vec![link("a", 12, 10, 0)], &[&[0]]);
    let load = Cross::Constant { rate: Rate(12_000_000), packet: Bytes(1500) };
    mesh.link_mut(LinkId(0)).add_cross("load", &load, Nanos(0), Some(Nanos(MS)));
    mesh.offer(Nanos(0), RouteId(0), 1500, 1).unwrap();
    assert_eq!(mesh.next_wake(|_, _| true), Some(Nanos(2 * MS)));
    stepped(&mut mesh, MS);
    let faster = Params { rate: Some(Rate(24_000_000)), ..mesh.link(LinkId(0)).params().clone() };
    mesh.link_mut(LinkId(0)).set(Nanos(MS), faster);
    assert_eq!(stepped(&mut mesh, 2 * MS), [arrived(3 * MS / 2, 0, 1)]);
    mesh.advance(Nanos(2 * MS));
    assert_eq!(mesh.links()[0].counters().busy, Nanos(3 * MS / 2));
}

fn loaded(name: &str, queue: Queue) -> Wire<Transit<u32>> {
    let params = Params { rate: Some(Rate(12_000_000)), queue, delay: Nanos::millis(2), ..Params::default() };
    let mut wire = Wire::new(params, 1, name);
    let load = Cross::Poisson { rate: Rate(10_000_000), packet: Bytes(1500) };
    wire.add_cross("load", &load, Nanos(0), Some(Nanos(3000 * MS)));
    wire
}

#[test]
fn cross_traffic_alone_wakes_its_driver() {
    let together = |_: &u32, _: &u32| true;
    for queue in [Queue::Packets(10), Queue::Codel(Codel::default())] {
        let mut mesh = mesh(vec![link("idle", 12, 10, 0), loaded("busy", queue)], &[&[0], &[1]]);
        let mut at = 0;
        while let Some(wake) = mesh.next_wake(together) {
            assert!((100 * MS..=110 * MS).contains(&(wake.0 - at)), "{wake} after {at}");
            at = wake.0;
            mesh.step(wake, &mut |_| panic!("nobody sends"));
            mesh.advance(wake);
        }
        assert!(at > 2900 * MS, "until it stops");
        // what begins later wakes nobody before
        let load = Cross::Constant { rate: Rate(12_000_000), packet: Bytes(1500) };
        mesh.link_mut(LinkId(0)).add_cross("late", &load, Nanos(9000 * MS), None);
        assert_eq!(mesh.next_wake(together), Some(Nanos(9000 * MS)));
    }
}

#[test]
fn drawing_early_changes_nothing() {
    for queue in [Queue::Packets(10), Queue::Codel(Codel::default())] {
        let run = |draws: bool| {
            let mut mesh = mesh(vec![loaded("first", queue.clone()), loaded("second", queue.clone())], &[&[0, 1]]);
            let (mut out, mut random) = (Vec::new(), Stream::new(5, "offers"));
            for packet in 0..400 {
                let at = u64::from(packet) * 8 * MS + (random.uniform() * 8e6) as u64;
                while let Some(draw) = mesh.next_draw().filter(|draw| draws && draw.0 <= at) {
                    mesh.step(draw, &mut |outcome| out.push(outcome));
                    mesh.advance(draw);
                }
                mesh.step(Nanos(at), &mut |outcome| out.push(outcome));
                let _ = mesh.offer(Nanos(at), RouteId(0), 1500, packet);
            }
            mesh.step(Nanos(4000 * MS), &mut |outcome| out.push(outcome));
            mesh.advance(Nanos(4000 * MS));
            (out, mesh.links().iter().map(|link| *link.counters()).collect::<Vec<_>>())
        };
        assert_eq!(run(true), run(false));
    }
}

#[test]
fn a_driver_wakes_at_the_end_of_a_run() {
    // 12 us a packet, 48 us a chunk: the head and four followers
    let fast = || vec![link("a", 1000, 100, 1)];
    let together = |prev: &u32, next: &u32| prev / 10 == next / 10;
    let mut one = mesh(fast(), &[&[0], &[0]]);
    assert_eq!(one.next_wake(together), None);
    one.offer(Nanos(0), RouteId(0), 1500, 0).unwrap();
    assert_eq!(one.next_wake(together), Some(Nanos(MS + 12_000)), "a single packet leaves at its due time");
    for packet in 1..10 {
        one.offer(Nanos(0), RouteId(0), 1500, packet).unwrap();
    }
    assert_eq!(one.next_wake(together), Some(Nanos(MS + 60_000)), "no run is longer than a chunk");
    assert_eq!(one.next_wake(|_, _| false), Some(Nanos(MS + 12_000)));
    let wake = one.next_wake(together).unwrap();
    assert_eq!(stepped(&mut one, wake.0).len(), 5);

    let mut split = mesh(fast(), &[&[0], &[0]]);
    for (route, packet) in [(0, 8), (0, 9), (0, 10)] {
        split.offer(Nanos(0), RouteId(route), 1500, packet).unwrap();
    }
    assert_eq!(split.next_wake(together), Some(Nanos(MS + 24_000)), "10 does not join 9");

    let mut routes = mesh(fast(), &[&[0], &[0]]);
    for (route, packet) in [(0, 0), (1, 1), (0, 2)] {
        routes.offer(Nanos(0), RouteId(route), 1500, packet).unwrap();
    }
    assert_eq!(routes.next_wake(together), Some(Nanos(MS + 12_000)), "another route is another run");

    let mut chain = mesh(vec![link("a", 1000, 100, 1), link("b", 0, 0, 5)], &[&[0, 1]]);
    for packet in 0..5 {
        chain.offer(Nanos(0), RouteId(0), 1500, packet).unwrap();
    }
    assert_eq!(chain.next_wake(together), Some(Nanos(MS + 12_000)), "there is more to do on the way");
}

#[test]
fn a_lost_packet_ends_a_run() {
    let mut mesh = mesh(vec![link("a", 1000, 100, 1)], &[&[0]]);
    let link = LinkId(0);
    let lossy = |loss: f64| Params { loss: loss.into(), ..mesh.link(link).params().clone() };
    let (none, all) = (lossy(0.0), lossy(1.0));
    for (packet, params) in [(0, &none), (1, &none), (2, &all), (3, &none)] {
        mesh.link_mut(link).set(Nanos(0), params.clone());
        mesh.offer(Nanos(0), RouteId(0), 1500, packet).unwrap();
    }
    assert_eq!(mesh.next_wake(|_, _| true), Some(Nanos(MS + 24_000)));
    stepped(&mut mesh, MS + 24_000);
    assert_eq!(mesh.next_wake(|_, _| true), Some(Nanos(MS + 36_000)), "a lost head is a run of its own");
}

fn early(mesh: &mut Mesh<u32>, now: u64) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    mesh.release_early(Nanos(now), Nanos(20_000), |_, _| true, &mut |at, _, _, packet| out.push((at.0, packet)));
    out
}

#[test]
fn whole_runs_leave_early_once_they_are_on_the_wire() {
    let mut on_wire = mesh(vec![link("a", 1000, 100, 1)], &[&[0]]);
    for packet in 0..3 {
        on_wire.offer(Nanos(0), RouteId(0), 1500, packet).unwrap();
    }
    stepped(&mut on_wire, MS + 10_000);
    assert_eq!(early(&mut on_wire, MS + 10_000), [], "the run ends at 36 us");
    stepped(&mut on_wire, MS + 13_000);
    assert_eq!(on_wire.upcoming(LinkId(0), RouteId(0)), Some((Nanos(MS + 24_000), false, &1)));
    stepped(&mut on_wire, MS + 20_000);
    assert_eq!(early(&mut on_wire, MS + 20_000), [(MS + 24_000, 1), (MS + 36_000, 2)]);
    // what comes after it is not due before it, however short the link becomes
    on_wire.link_mut(LinkId(0)).set(Nanos(MS + 20_000), Params::default());
    on_wire.offer(Nanos(MS + 20_000), RouteId(0), 1500, 3).unwrap();
    assert_eq!(on_wire.upcoming(LinkId(0), RouteId(0)), Some((Nanos(MS + 36_000), false, &3)));

    let mut in_service = mesh(vec![link("a", 1000, 100, 0)], &[&[0]]);
    in_service.offer(Nanos(0), RouteId(0), 1500, 0).unwrap();
    assert_eq!(early(&mut in_service, 0), [], "it may still be rescheduled");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A chain gives what its links give one after the other, however often it is stepped.
    #[test]
    fn a_chain_equals_the_composition_of_its_links(seed in any::<u64>(), every in 1u64..20) {
        let chain = || [(20, 5, 3), (12, 3, 0), (15, 2, 7)].map(|(mbit, queue, delay)| {
            let mut params = link::<u32>("x", mbit, queue, delay).params().clone();
            params.loss = 0.05.into();
            (params, format!("hop{mbit}"))
        });
        let cross = Cross::Poisson { rate: Rate(4_000_000), packet: Bytes(1000) };
        let mut draw = Stream::new(seed, "arrivals");
        let mut now = 0;
        let offers: Vec<(u64, u32)> = (0..200).map(|_| {
            now += draw.exponential(900_000.0) as u64;
            (now, 100 + (draw.uniform() * 1400.0) as u32)
        }).collect();

        let mut expected: Vec<(u64, u32, u32)> =
            offers.iter().zip(0..).map(|(&(at, bytes), id)| (at, bytes, id)).collect();
        for (params, name) in chain() {
            let mut link = Wire::new(params, seed, &name);
            link.add_cross("load", &cross, Nanos(0), None);
            let mut out = Vec::new();
            let mut take = |link: &mut Wire<u32>, until: Nanos| {
                while let Some(r) = link.next_due().filter(|&due| due <= until).and_then(|due| link.pop(due)) {
                    if !r.lost {
                        out.push((r.at.0, r.bytes, r.packet));
                    }
                }
            };
            for (at, bytes, id) in expected {
                take(&mut link, Nanos(at));
                let _ = link.offer(Nanos(at), bytes, Tag::default(), id);
            }
            take(&mut link, Nanos::MAX);
            expected = out;
        }

        let links = chain().map(|(params, name)| {
            let mut link = Wire::new(params, seed, &name);
            link.add_cross("load", &cross, Nanos(0), None);
            link
        });
        let mut mesh = mesh(links.into(), &[&[0, 1, 2]]);
        let mut got = Vec::new();
        let mut note = |outcome| if let Outcome::Arrived { at, packet, .. } = outcome {
            got.push((at.0, offers[packet as usize].1, packet));
        };
        for (id, &(at, bytes)) in offers.iter().enumerate() {
            if (id as u64).is_multiple_of(every) {
                mesh.step(Nanos(at / 2 + mesh_clock(&offers, id) / 2), &mut note);
            }
            mesh.step(Nanos(at), &mut note);
            let _ = mesh.offer(Nanos(at), RouteId(0), bytes, id as u32);
        }
        mesh.step(Nanos::MAX, &mut note);
        prop_assert_eq!(got, expected);
    }
}

/// The time of the offer before, so that a step between two offers goes forward.
fn mesh_clock(offers: &[(u64, u32)], id: usize) -> u64 {
    id.checked_sub(1).map_or(0, |before| offers[before].0)
}
