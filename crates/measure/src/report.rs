//! What a receiver tells of the trains that have come: of each packet whether and when, as differences.
//!
//! A report holds pieces of trains. A piece: train (4 bytes), packets of the train (2; 0: nothing came, nobody knows how many
//! there were), first packet (2), packets of the piece (2), a stamp to begin with (8 [ns]), and for each packet a whole
//! number of variable length: 0: lost; else 1 + 2 z + b with z the difference to the stamp before, signed [ns], and b = 1 if
//! the packet came with others: its place among them and their number follow. Of no others: it came and the host had no
//! room for it. A report without pieces says merely that something comes; a piece of no packets whose first is 1, that all of
//! the train may have found no room.
//!
//! How long a train is, its sender claims. A report is as long as what came asks for: where fewer than one in [`SPARSE`] of
//! the claimed packets came, it says that nothing did.

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

/// What a receiver knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It did not come.
    Lost,
    /// It came, but this host had no room for it.
    Missed,
    Came(Arrival),
}

/// The same in little room, since many are kept: when it came, its place among those that came with it, and their number;
/// of none: 0: lost, 1: missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    at: Nanos,
    index: u16,
    of: u16,
}

impl Packed {
    pub const LOST: Packed = Packed { at: Nanos::ZERO, index: 0, of: 0 };
    const MISSED: Packed = Packed { index: 1, ..Packed::LOST };

    pub fn is_missed(self) -> bool {
        (self.index, self.of) == (1, 0)
    }
}

impl From<Fate> for Packed {
    fn from(fate: Fate) -> Packed {
        match fate {
            Fate::Lost => Packed::LOST,
            Fate::Missed => Packed::MISSED,
            Fate::Came(Arrival { at, batch }) => {
                let of = u16::try_from(batch.of).unwrap_or(u16::MAX).max(1);
                // no socket holds more; the last one stays the last
                let index =
                    if batch.is_last() { of - 1 } else { batch.index.min(u32::from(of).saturating_sub(2)) as u16 };
                Packed { at, index, of }
            }
        }
    }
}

impl From<Packed> for Fate {
    fn from(packed: Packed) -> Fate {
        match (packed.index, packed.of) {
            (0, 0) => Fate::Lost,
            (_, 0) => Fate::Missed,
            (index, of) => Fate::Came(Arrival { at: packed.at, batch: Batch { index: index.into(), of: of.into() } }),
        }
    }
}

/// Consecutive packets of a train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub train: u32,
    /// Packets of the train; 0: not one came.
    pub count: u16,
    /// The first one of the piece. Of a train of which not one came: 1 where the host may have had no room for it.
    pub first: u16,
    pub fates: Vec<Fate>,
}

/// What has come of a train.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrainArrivals {
    /// Packets of the train, as its sender says; 0: nobody has said it.
    pub count: u16,
    /// Nothing came, perhaps since this host had no room for it.
    pub missed: bool,
    /// By their places in the train, which mostly come in order.
    packets: Vec<Kept>,
}

/// [`Packed`] with its place: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    at: Nanos,
    index: u16,
    of: u16,
    place: u16,
}

impl Kept {
    fn new(place: u16, fate: Fate) -> Kept {
        let Packed { at, index, of } = fate.into();
        Kept { at, index, of, place }
    }

    fn fate(self) -> Fate {
        Packed { at: self.at, index: self.index, of: self.of }.into()
    }
}

impl TrainArrivals {
    pub fn of(count: u16) -> TrainArrivals {
        TrainArrivals { count, missed: false, packets: Vec::new() }
    }

    /// Packets that came, whether there was room for them or not.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Adds one; false if it came before.
    pub fn add(&mut self, index: u16, arrival: Arrival) -> bool {
        let kept = Kept::new(index, Fate::Came(arrival));
        match self.find(index) {
            Err(place) => self.packets.insert(place, kept),
            Ok(place) if self.packets[place].fate() == Fate::Missed => self.packets[place] = kept,
            Ok(_) => return false,
        }
        true
    }

    /// This host had no room for it; false if more is known of it.
    pub fn miss(&mut self, index: u16) -> bool {
        let Err(place) = self.find(index) else { return false };
        self.packets.insert(place, Kept::new(index, Fate::Missed));
        true
    }

    /// Where a packet is kept, or would be.
    fn find(&self, place: u16) -> Result<usize, usize> {
        match self.packets.last() {
            Some(last) if last.place >= place => self.packets.binary_search_by_key(&place, |kept| kept.place),
            _ => Err(self.packets.len()),
        }
    }

    /// No more are expected: what was made ready for them is given back.
    pub fn close(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// For each packet of the train what became of it.
    fn each(&self) -> impl Iterator<Item = Fate> {
        let mut kept = self.packets.iter().peekable();
        (0..self.count)
            .map(move |place| kept.next_if(|kept| kept.place == place).map_or(Fate::Lost, |kept| kept.fate()))
    }
}

/// One in so many packets of a train has to come.
const SPARSE: usize = 32;
/// Bytes of a piece besides its packets.
const PIECE: usize = 18;
/// The most that a packet takes [byte].
const MOST: usize = 20;

fn push_fate(out: &mut Vec<u8>, before: &mut Nanos, fate: Fate) {
    let Arrival { at, batch } = match fate {
        Fate::Lost => return push_varint(out, 0),
        Fate::Missed => return out.extend([2, 0, 0]),
        Fate::Came(arrival) => arrival,
    };
    // a stamp that is hours off is as good as any
    let step = (at.0.wrapping_sub(before.0) as i64).clamp(-(1 << 60), 1 << 60);
    *before = Nanos(before.0.wrapping_add_signed(step));
    push_varint(out, 1 + (zigzag(step) << 1 | u64::from(batch.of > 1)));
    if batch.of > 1 {
        push_varint(out, batch.index.into());
        push_varint(out, batch.of.into());
    }
}

fn read_fate(r: &mut Reader<'_>, before: &mut Nanos) -> Option<Fate> {
    let Some(word) = r.varint()?.checked_sub(1) else { return Some(Fate::Lost) };
    *before = Nanos(before.0.checked_add_signed(unzigzag(word >> 1))?);
    if *before > LATEST {
        return None;
    }
    let mut batch = Batch::SINGLE;
    if word & 1 == 1 {
        batch = Batch { index: r.varint()?.try_into().ok()?, of: r.varint()?.try_into().ok()? };
        if (word, batch.index, batch.of) == (1, 0, 0) {
            return Some(Fate::Missed);
        }
        if batch.index >= batch.of {
            return None;
        }
    }
    Some(Fate::Came(Arrival { at: *before, batch }))
}

/// The bodies of the reports about a train: as few as it takes.
pub(super) fn encode(train: u32, came: &TrainArrivals) -> Vec<Vec<u8>> {
    let count = if came.packets.len() * SPARSE < usize::from(came.count) { 0 } else { came.count };
    let all: Vec<Fate> = came.each().take(count.into()).collect();
    let mut reports = Vec::new();
    let mut first = usize::from(count == 0 && came.missed);
    let end = first.max(all.len());
    loop {
        let left = all.get(first..).unwrap_or_default();
        let came = left.iter().find_map(|fate| if let Fate::Came(arrival) = fate { Some(arrival.at) } else { None });
        let start = came.unwrap_or(Nanos::ZERO);
        let mut body = Vec::with_capacity(PIECE + 5 * left.len().min(BODY / 5));
        body.extend(train.to_be_bytes());
        body.extend(count.to_be_bytes());
        body.extend((first as u16).to_be_bytes());
        body.extend([0; 2]);
        body.extend(start.0.to_be_bytes());
        let (mut before, mut packets) = (start, 0usize);
        for &fate in left {
            if body.len() + MOST > BODY {
                break;
            }
            push_fate(&mut body, &mut before, fate);
            packets += 1;
        }
        body[8..10].copy_from_slice(&(packets as u16).to_be_bytes());
        reports.push(body);
        first += packets;
        if first == end {
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
            let blank = (count, first, packets) == (0, 1, 0);
            if u32::from(first) + u32::from(packets) > u32::from(count) && !blank {
                return None;
            }
            let mut before = r.time()?;
            let fates = (0..packets).map(|_| read_fate(r, &mut before)).collect::<Option<Vec<_>>>()?;
            pieces.push(Piece { train, count, first, fates });
        }
        Some(pieces)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrival(at: u64, index: u32, of: u32) -> Fate {
        Fate::Came(Arrival { at: Nanos(at), batch: Batch { index, of } })
    }

    fn came(fates: &[Fate]) -> TrainArrivals {
        let mut came = TrainArrivals::of(fates.len() as u16);
        for (&fate, index) in fates.iter().zip(0..) {
            match fate {
                Fate::Lost => {}
                Fate::Missed => assert!(came.miss(index) && !came.miss(index)),
                Fate::Came(arrival) => {
                    assert!(came.add(index, arrival) && !came.add(index, arrival) && !came.miss(index));
                }
            }
        }
        came
    }

    fn back(train: u32, fates: &[Fate]) -> Vec<Fate> {
        let mut all = Vec::new();
        for body in encode(train, &came(fates)) {
            assert!(body.len() <= BODY, "{}", body.len());
            for piece in decode(&body).unwrap() {
                assert_eq!((piece.train, piece.count, piece.first), (train, fates.len() as u16, all.len() as u16));
                all.extend(piece.fates);
            }
        }
        all
    }

    #[test]
    fn a_packet_is_kept_in_sixteen_bytes_and_in_order_whenever_it_comes() {
        assert_eq!((size_of::<Kept>(), size_of::<Packed>()), (16, 16));
        let mut came = TrainArrivals::of(4);
        for place in [3, 0, 2] {
            assert!(
                came.add(place, Arrival { at: Nanos(u64::from(place)), batch: Batch { index: 70_000, of: 70_001 } })
            );
        }
        let kept: Vec<_> =
            came.each().map(|fate| if let Fate::Came(a) = fate { a.batch.is_last() } else { false }).collect();
        assert_eq!(kept, [true, false, true, true]);
        let first = Fate::Came(Arrival { at: Nanos(1), batch: Batch { index: 0, of: 70_001 } });
        assert!(matches!(Fate::from(Packed::from(first)), Fate::Came(a) if !a.batch.is_last()));
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
            let arrivals: Vec<_> =
                (0..count).map(|i| if i >= count - came { arrival(7, 0, 1) } else { Fate::Lost }).collect();
            let bodies = encode(7, &self::came(&arrivals));
            (bodies.len(), decode(&bodies[0]).unwrap()[0].count)
        };
        assert_eq!([told(1, SPARSE), told(1, SPARSE + 1), told(9, 65_535)], [(1, SPARSE as u16), (1, 0), (1, 0)]);
    }

    #[test]
    fn what_found_no_room_is_told_as_that() {
        let fates = [Fate::Missed, arrival(9, 0, 1), Fate::Lost, Fate::Missed, arrival(12, 1, 3), Fate::Missed];
        assert_eq!(back(3, &fates), fates);
        assert_eq!(back(3, &fates[..1]), [Fate::Missed]);
        let mut came = came(&fates[..1]);
        assert!(came.add(0, Arrival { at: Nanos(5), batch: Batch::SINGLE }), "it has come after all");
        let blank = TrainArrivals { missed: true, ..TrainArrivals::default() };
        let piece = Piece { train: 8, count: 0, first: 1, fates: vec![] };
        assert_eq!(encode(8, &blank).iter().map(|body| decode(body)).collect::<Vec<_>>(), [Some(vec![piece])]);
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
            prop_oneof![
                Just(Fate::Lost), Just(Fate::Missed),
                (0u64..u64::MAX / 16, 0u32..9, 1u32..9).prop_map(|(at, index, of)| arrival(at, index.min(of - 1), of)),
            ], 0..700)) {
            prop_assume!(came(&packets).packets() * SPARSE >= packets.len());
            prop_assert_eq!(back(train, &packets), packets);
        }

        #[test]
        fn random_reports_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&body);
        }
    }
}
