//! Packets that others overtake: share and distance as RFC 4737 and RFC 5236 count them.

use std::collections::BTreeMap;

use pathcast_base::{Nanos, Rate};
use pathcast_link::{Fair, Link, LinkId, Mesh, Outcome, Params, Queue, Released, Reorder, RouteId, Tag, Wire};

const US: u64 = 1000;

fn line(share: f64, distance: u64) -> Params {
    // a packet of 1500 bytes takes 100 us
    let reorder = Some(Reorder { share, distance: Nanos(distance) });
    let params = Params { rate: Some(Rate(120_000_000)), reorder, delay: Nanos::millis(5), ..Params::default() };
    assert_eq!(params.check(), Ok(()));
    params
}

/// Packets every 100 us, in the order in which they arrive.
fn arrivals(params: Params, packets: u32) -> Vec<Released<u32>> {
    let (mut wire, mut out) = (Wire::new(params, 1, "l"), Vec::new());
    for i in 0..packets {
        let now = Nanos(u64::from(i) * 100 * US);
        while wire.next_due().is_some_and(|due| due <= now) {
            out.extend(wire.pop(wire.next_due().unwrap()));
        }
        assert!(wire.offer(now, 1500, Tag::default(), i).is_none());
    }
    while let Some(due) = wire.next_due() {
        out.extend(wire.pop(due));
    }
    assert_eq!(out.len(), packets as usize);
    out
}

/// Extents of the reordered packets: RFC 4737, sections 3.3 (NextExp) and 4.2.1, by their letter.
fn extents(order: &[u32]) -> Vec<usize> {
    let (mut next_expected, mut extents) = (0, Vec::new());
    for (i, &s) in order.iter().enumerate() {
        if s >= next_expected {
            next_expected = s + 1;
        } else {
            let j = order[..i].iter().position(|&earlier| earlier > s).expect("it is reordered");
            extents.push(i - j);
        }
    }
    extents
}

/// Reorder density of RFC 5236, section 4: shares of the displacements, arrival place less sending place.
fn density(order: &[u32]) -> BTreeMap<i64, f64> {
    let mut density = BTreeMap::new();
    for (i, &s) in order.iter().enumerate() {
        *density.entry(i as i64 - i64::from(s)).or_default() += 1.0 / order.len() as f64;
    }
    density
}

#[test]
fn a_late_packet_comes_its_distance_later_and_the_others_in_time() {
    let out = arrivals(line(0.05, 350 * US), 50_000);
    let mut late = 0;
    for released in &out {
        let in_order = u64::from(released.packet) * 100 * US + 100 * US + 5000 * US;
        if released.at.0 != in_order {
            assert_eq!(released.at.0, in_order + 350 * US);
            late += 1;
        }
    }
    assert!((f64::from(late) / 50_000.0 - 0.05).abs() < 0.003, "{late}");
    assert!(out.is_sorted_by_key(|released| released.at));
}

#[test]
fn share_and_distance_are_those_of_the_rfcs() {
    // late packets are alone nearly always: ceil(350 / 100) - 1 = 3 overtake each
    let share = 0.01;
    let order: Vec<u32> = arrivals(line(share, 350 * US), 200_000).iter().map(|r| r.packet).collect();
    let extents = extents(&order);
    // not reordered are those whose three followers are late as well
    let ratio = extents.len() as f64 / 200_000.0;
    assert!((ratio / (share * (1.0 - share.powi(3))) - 1.0).abs() < 0.06, "{ratio}");
    // an extent of 3, but where one of the three followers is late as well, or one of the two packets before, which then
    // arrives in between
    let exact = extents.iter().filter(|&&extent| extent == 3).count() as f64 / extents.len() as f64;
    assert!((exact - (1.0 - share).powi(5)).abs() < 0.02, "{exact}");
    assert!(extents.iter().all(|&extent| extent <= 5));
    // a late packet is behind by its followers that are in time, these are early by one each
    let density = density(&order);
    assert!((density[&3] - share * (1.0 - share).powi(3)).abs() < 0.001, "{density:?}");
    assert!((density[&-1] - 3.0 * share * (1.0 - share).powi(3)).abs() < 0.003, "{density:?}");
    assert!((density[&0] - (1.0 - share).powi(4)).abs() < 0.004, "{density:?}");
}

#[test]
fn within_a_gap_nobody_overtakes_and_at_the_same_time_order_holds() {
    for distance in [1, 99 * US, 100 * US] {
        let order: Vec<u32> = arrivals(line(0.3, distance), 5000).iter().map(|r| r.packet).collect();
        assert!(order.is_sorted(), "{distance}");
    }
    // one nanosecond later than the next: it goes first
    let order: Vec<u32> = arrivals(line(0.3, 100 * US + 1), 5000).iter().map(|r| r.packet).collect();
    assert!(!order.is_sorted());
}

#[test]
fn all_late_is_a_longer_wire_and_no_reordering() {
    let out = arrivals(line(1.0, 700 * US), 1000);
    assert!(out.iter().zip(0u32..).all(|(r, i)| r.packet == i && r.at.0 == (u64::from(i) * 100 + 5800) * US));
}

#[test]
fn a_change_finds_what_is_on_the_wire_and_leaves_it() {
    let mut link = Link::new(line(1.0, 10_000 * US), 1, "l");
    (0..3).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    assert!(link.pop(Nanos(5100 * US)).is_none()); // the first is overtaken from now on
    assert_eq!(link.len(), 3);
    link.set(Nanos(5150 * US), Params { reorder: None, ..line(1.0, 1) });
    link.offer(Nanos(5150 * US), 1500, 3).unwrap();
    let out = std::iter::from_fn(|| {
        let due = link.next_due()?;
        Some(link.pop(due))
    });
    let out: Vec<(u64, u32)> = out.flatten().map(|r| (r.at.0 / US, r.packet)).collect();
    assert_eq!(out, [(10_250, 3), (15_100, 0), (15_200, 1), (15_300, 2)]);
    assert!(link.is_empty());
}

/// The simulator pops at due times; the emulator steps a mesh, late, lets runs leave early, and joins what may.
#[test]
fn both_worlds_find_the_same() {
    let fair = Queue::Fair(Fair { packets: 50, quantum: pathcast_base::Bytes(1514) });
    for queue in [Queue::Packets(50), fair] {
        let params = Params { queue, chunk: Nanos::micros(250), ..line(0.2, 730 * US) };
        let simulated: Vec<(u64, u32)> = arrivals(params.clone(), 2000).iter().map(|r| (r.at.0, r.packet)).collect();
        let mut mesh = Mesh::new(vec![Wire::new(params, 1, "l")], vec![vec![LinkId(0)]]).unwrap();
        let mut emulated = Vec::new();
        let mut now = Nanos(0);
        let mut joins = 0;
        for i in 0..2000u32 {
            let at = Nanos(u64::from(i) * 100 * US);
            while let Some(wake) = mesh.next_wake(|a, b| a + 1 == *b).filter(|wake| *wake + Nanos(7 * US) <= at) {
                now = now.max(wake + Nanos(7 * US));
                let before = emulated.len();
                mesh.step(now, &mut |outcome| keep(outcome, &mut emulated));
                mesh.release_early(now, Nanos(20 * US), |a, b| a + 1 == *b, &mut |at, _, _, packet| {
                    emulated.push((at.0, packet));
                });
                joins += usize::from(emulated.len() > before + 1);
            }
            mesh.step(at, &mut |outcome| keep(outcome, &mut emulated));
            mesh.offer(at, RouteId(0), 1500, i).unwrap();
        }
        mesh.step(Nanos::secs(1), &mut |outcome| keep(outcome, &mut emulated));
        assert_eq!(simulated, emulated);
        assert!(joins > 20, "{joins}");
    }
}

fn keep(outcome: Outcome<u32>, out: &mut Vec<(u64, u32)>) {
    let Outcome::Arrived { at, packet, .. } = outcome else { panic!("{outcome:?}") };
    out.push((at.0, packet));
}
