//! What a receiver tells of the trains that have come: of each packet whether and when, as differences.
//!
//! A report holds pieces of trains. A piece: train (4 bytes), packets of the train (2; 0: nothing came, nobody knows how many
//! there were), first packet (2), packets of the piece (2), a stamp to begin with (8 [ns]), and for each packet a whole
//! number of variable length: 0: lost; else 1 + 2 z + b with z the difference to the stamp before, signed [ns], and b = 1 if
//! the packet came with others, whose number and its place among them follow. A report without pieces says merely that
//! something comes.
//!
//! How long a train is, its sender claims. A report is as long as what came asks for: where fewer than one in [`SPARSE`] of
//! the claimed packets came, it says that nothing did.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pathcast_base::Nanos;
use pathcast_session::codec::{LATEST, Reader, push_varint, unzigzag, whole, zigzag};

use super::wire::BODY;
use crate::machine::Batch;

/// When a packet came, by the receiver's clock, and with how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub at: Nanos,
    pub batch: Batch,
}

/// Consecutive packets of a train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub train: u32,
    /// Packets of the train.
    pub count: u16,
    /// The first one of the piece.
    pub first: u16,
    pub arrivals: Vec<Option<Arrival>>,
}

/// What has come of a train.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrainArrivals {
    /// Packets of the train, as its sender says; 0: nobody has said it.
    pub count: u16,
    /// By their places in the train.
    packets: BTreeMap<u16, Arrival>,
}

impl TrainArrivals {
    pub fn of(count: u16) -> TrainArrivals {
        TrainArrivals { count, packets: BTreeMap::new() }
    }

    /// Packets that came.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Adds one; false if it came before.
    pub fn add(&mut self, index: u16, arrival: Arrival) -> bool {
        let Entry::Vacant(place) = self.packets.entry(index) else { return false };
        place.insert(arrival);
        true
    }

    /// For each packet of the train when it came, if it did.
    fn each(&self) -> impl Iterator<Item = Option<Arrival>> {
        (0..self.count).map(|index| self.packets.get(&index).copied())
    }
}

/// One in so many packets of a train has to come.
const SPARSE: usize = 32;
/// Bytes of a piece besides its packets.
const PIECE: usize = 18;
/// The most that a packet takes [byte].
const MOST: usize = 20;

fn push_arrival(out: &mut Vec<u8>, before: &mut Nanos, arrival: Option<Arrival>) {
    let Some(Arrival { at, batch }) = arrival else { return push_varint(out, 0) };
    // a stamp that is hours off is as good as any
    let step = (at.0.wrapping_sub(before.0) as i64).clamp(-(1 << 60), 1 << 60);
    *before = Nanos(before.0.wrapping_add_signed(step));
    push_varint(out, 1 + (zigzag(step) << 1 | u64::from(batch.of > 1)));
    if batch.of > 1 {
        push_varint(out, batch.index.into());
        push_varint(out, batch.of.into());
    }
}

fn read_arrival(r: &mut Reader<'_>, before: &mut Nanos) -> Option<Option<Arrival>> {
    let Some(word) = r.varint()?.checked_sub(1) else { return Some(None) };
    *before = Nanos(before.0.checked_add_signed(unzigzag(word >> 1))?);
    if *before > LATEST {
        return None;
    }
    let mut batch = Batch::SINGLE;
    if word & 1 == 1 {
        batch = Batch { index: r.varint()?.try_into().ok()?, of: r.varint()?.try_into().ok()? };
        if batch.index >= batch.of {
            return None;
        }
    }
    Some(Some(Arrival { at: *before, batch }))
}

/// The bodies of the reports about a train: as few as it takes.
pub(super) fn encode(train: u32, came: &TrainArrivals) -> Vec<Vec<u8>> {
    let count = if came.packets.len() * SPARSE < usize::from(came.count) { 0 } else { came.count };
    let all: Vec<Option<Arrival>> = came.each().take(count.into()).collect();
    let mut reports = Vec::new();
    let mut first = 0;
    loop {
        let left = &all[first..];
        let start = left.iter().flatten().next().map_or(Nanos::ZERO, |arrival| arrival.at);
        let mut body = Vec::with_capacity(PIECE + 5 * left.len().min(BODY / 5));
        body.extend(train.to_be_bytes());
        body.extend(count.to_be_bytes());
        body.extend((first as u16).to_be_bytes());
        body.extend([0; 2]);
        body.extend(start.0.to_be_bytes());
        let (mut before, mut packets) = (start, 0usize);
        for &arrival in left {
            if body.len() + MOST > BODY {
                break;
            }
            push_arrival(&mut body, &mut before, arrival);
            packets += 1;
        }
        body[8..10].copy_from_slice(&(packets as u16).to_be_bytes());
        reports.push(body);
        first += packets;
        if first == all.len() {
            return reports;
        }
    }
}

/// The pieces of a report.
pub(super) fn decode(body: &[u8]) -> Option<Vec<Piece>> {
    whole(body, |r| {
        let mut pieces = Vec::new();
        while !r.is_empty() {
            let (train, count, first, packets) = (r.u32()?, r.u16()?, r.u16()?, r.u16()?);
            if u32::from(first) + u32::from(packets) > u32::from(count) {
                return None;
            }
            let mut before = r.time()?;
            let arrivals = (0..packets).map(|_| read_arrival(r, &mut before)).collect::<Option<Vec<_>>>()?;
            pieces.push(Piece { train, count, first, arrivals });
        }
        Some(pieces)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrival(at: u64, index: u32, of: u32) -> Option<Arrival> {
        Some(Arrival { at: Nanos(at), batch: Batch { index, of } })
    }

    fn came(arrivals: &[Option<Arrival>]) -> TrainArrivals {
        let mut came = TrainArrivals::of(arrivals.len() as u16);
        let packets = arrivals.iter().zip(0..).filter_map(|(arrival, index)| Some((index, (*arrival)?)));
        packets.for_each(|(index, arrival)| assert!(came.add(index, arrival) && !came.add(index, arrival)));
        came
    }

    fn back(train: u32, arrivals: &[Option<Arrival>]) -> Vec<Option<Arrival>> {
        let mut all = Vec::new();
        for body in encode(train, &came(arrivals)) {
            assert!(body.len() <= BODY, "{}", body.len());
            for piece in decode(&body).unwrap() {
                assert_eq!((piece.train, piece.count, piece.first), (train, arrivals.len() as u16, all.len() as u16));
                all.extend(piece.arrivals);
            }
        }
        all
    }

    #[test]
    fn a_usual_train_takes_four_bytes_a_packet() {
        let arrivals: Vec<_> = (0..12).map(|i| arrival(1_000_000_000_000 + i * 2_240_000, 0, 1)).collect();
        assert_eq!(back(7, &arrivals), arrivals);
        assert!(encode(7, &came(&arrivals))[0].len() <= PIECE + 12 * 4);
        assert_eq!(decode(&[]), Some(vec![]));
        assert_eq!(decode(&encode(9, &TrainArrivals::default())[0]).unwrap()[0].count, 0);
    }

    #[test]
    fn a_train_of_which_next_to_nothing_came_is_told_in_one_piece() {
        let told = |came: usize, count: usize| {
            let arrivals: Vec<_> = (0..count).map(|i| (i >= count - came).then(|| arrival(7, 0, 1).unwrap())).collect();
            let bodies = encode(7, &self::came(&arrivals));
            (bodies.len(), decode(&bodies[0]).unwrap()[0].count)
        };
        assert_eq!([told(1, SPARSE), told(1, SPARSE + 1), told(9, 65_535)], [(1, SPARSE as u16), (1, 0), (1, 0)]);
    }

    #[test]
    fn times_that_no_clock_shows_are_refused() {
        for at in [LATEST.0, LATEST.0 + 1, u64::MAX] {
            assert_eq!(decode(&encode(1, &came(&[arrival(at, 0, 1)]))[0]).is_some(), at == LATEST.0, "{at}");
        }
    }

    proptest! {
        #[test]
        fn trains_come_back(train in any::<u32>(), packets in prop::collection::vec(
            prop::option::of((0u64..u64::MAX / 16, 0u32..9, 1u32..9)), 0..700)) {
            let arrivals: Vec<_> =
                packets.iter().map(|p| p.and_then(|(at, index, of)| arrival(at, index.min(of - 1), of))).collect();
            prop_assume!(came(&arrivals).packets() * SPARSE >= arrivals.len());
            prop_assert_eq!(back(train, &arrivals), arrivals);
        }

        #[test]
        fn random_reports_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&body);
        }
    }
}
