//! Tests: every segment of a super-packet meets the same link as a packet of its own in the simulator.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{
    Aggregation, Codel, Fair, Format, FqCodel, GilbertElliott, LinkId, Loss, Mesh, Outcome, Params, Pie, Policer,
    Queue, Red, Reorder, RouteId, Schedule, Tag, Trace, Wire,
};
use proptest::prelude::*;

use crate::packet::{Packet, Segment, VNET};
use crate::tun::Layer;

/// An IPv4 TCP super-packet that may be marked; the source port tells flows apart.
fn frame(port: u8, payload: usize) -> Rc<Packet> {
    let mut f = vec![0; VNET + 40 + payload];
    (f[0], f[1]) = (1, 1);
    f[4..6].copy_from_slice(&1448u16.to_ne_bytes());
    f[6..8].copy_from_slice(&20u16.to_ne_bytes());
    f[8..10].copy_from_slice(&16u16.to_ne_bytes());
    let length = (40 + payload) as u16;
    let ip = &mut f[VNET..];
    (ip[0], ip[1], ip[9]) = (0x45, 2, 6);
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[12..22].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 7, port]);
    ip[32] = 5 << 4;
    let bytes = f.len();
    Packet::new(f.into(), bytes, Layer::Ip)
}

fn kinds() -> Vec<Params> {
    let line = Params { rate: Some(Rate(50_000_000)), delay: Nanos::millis(3), ..Params::default() };
    let queue = |queue| Params { queue, ..line.clone() };
    let (target, interval) = (Nanos::micros(700), Nanos::millis(4));
    let schedule = Schedule::opportunities((0..200).map(|n| n / 3 + 1)).unwrap();
    let trace = Trace::new("f".into(), String::new(), Format::Mahimahi, Arc::new(schedule));
    let fq = FqCodel { target, interval, limit: 120, ..FqCodel::default() };
    vec![
        queue(Queue::Packets(40)),
        queue(Queue::Red(Red { min: 3.0, max: 30.0, limit: 60, probability: 0.1, weight: 0.1, ecn: true })),
        queue(Queue::Fair(Fair { packets: 60, quantum: Bytes(1514) })),
        queue(Queue::Codel(Codel { target, interval, limit: 100, ecn: true })),
        queue(Queue::FqCodel(fq)),
        queue(Queue::Pie(Pie { target, t_update: Nanos::millis(1), max_burst: target, ecn: true, ..Pie::default() })),
        Params { rate: None, trace: Some(trace), ..queue(Queue::FqCodel(fq)) },
        Params {
            aggregation: Some(Aggregation { every: Nanos::millis(2), bytes: Bytes(9000) }),
            ..queue(Queue::FqCodel(fq))
        },
        Params { reorder: Some(Reorder { share: 0.1, distance: Nanos::micros(900) }), ..line.clone() },
        Params { policer: Some(Policer { rate: Rate(20_000_000), burst: Bytes(30_000) }), ..line.clone() },
        Params { loss: Loss::Bursts(GilbertElliott { p: 0.05, r: 0.3, good: 0.0, bad: 1.0 }), ..line.clone() },
    ]
}

/// When a segment left or was lost, and whether marked.
type Fates = BTreeMap<(u32, u16), (u64, bool, bool)>;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn segments_are_packets(frames in prop::collection::vec((0u64..12_000_000, 0u8..4, 1usize..60_000), 1..30)) {
        for params in kinds() {
            let (mut wire, mut alone) = (Wire::new(params.clone(), 9, "l"), Fates::new());
            let links = vec![Wire::new(params.clone(), 9, "l")];
            let (mut mesh, mut within) = (Mesh::<(u32, Segment)>::new(links, vec![vec![LinkId(0)]]).unwrap(), Fates::new());
            let drain = |wire: &mut Wire<(u32, u16)>, until: u64, out: &mut Fates| {
                while let Some(due) = wire.next_due().filter(|due| due.0 <= until) {
                    out.extend(wire.pop(due).map(|r| (r.packet, (r.at.0, r.lost, r.marked && !r.lost))));
                }
            };
            let keep = |outcome: Outcome<(u32, Segment)>, out: &mut Fates| {
                let (at, lost, marked, (id, segment)) = match outcome {
                    Outcome::Arrived { at, marked, packet, .. } => (at, false, marked, packet),
                    Outcome::Dropped { at, packet, .. } => (at, true, false, packet),
                };
                out.insert((id, segment.index()), (at.0, lost, marked));
            };
            let mut now = 0;
            for (id, &(gap, port, payload)) in frames.iter().enumerate() {
                now += gap;
                let (id, packet) = (id as u32, frame(port, payload));
                prop_assert_eq!(usize::from(packet.segments()), payload.div_ceil(1448));
                let tag = Tag { flow: packet.flow(), ect: packet.ect() };
                prop_assert!(tag.ect);
                drain(&mut wire, now, &mut alone);
                mesh.step(Nanos(now), &mut |outcome| keep(outcome, &mut within));
                for index in 0..packet.segments() {
                    let bytes = 40 + (payload - usize::from(index) * 1448).min(1448) as u32;
                    if wire.offer_tagged(Nanos(now), bytes, tag, (id, index)).is_err() {
                        alone.insert((id, index), (now, true, false));
                    }
                    let (segment, counted) = Packet::segment(&packet, index);
                    prop_assert_eq!(counted, bytes);
                    if mesh.offer_tagged(Nanos(now), RouteId(0), counted, tag, (id, segment)).is_err() {
                        within.insert((id, index), (now, true, false));
                    }
                }
            }
            drain(&mut wire, 1 << 60, &mut alone);
            mesh.step(Nanos(1 << 60), &mut |outcome| keep(outcome, &mut within));
            prop_assert!(alone == within, "{:?}", params);
        }
    }
}
