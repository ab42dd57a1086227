//! The question what arrives of a packet, and its answer: how large it is and which traffic class it has, at the end that it
//! was sent to. The answer is as large as the question says, and of the class that it says, so that either direction can be
//! asked for alone. A far end that does not know the question drops it as malformed.

use pathcast_base::Nanos;
use pathcast_session::codec::{Reader, whole};

/// Client: what comes of this, and answer so. Filled up to any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo {
    pub id: u32,
    /// The answer's size [IP bytes], 0: as small as possible; and its traffic class: code point and congestion mark.
    pub size: u16,
    pub class: u8,
}

impl Echo {
    pub fn encode(&self) -> Vec<u8> {
        [&self.id.to_be_bytes()[..], &self.size.to_be_bytes(), &[self.class]].concat()
    }
    pub fn decode(body: &[u8]) -> Option<Echo> {
        whole(body, |r| Some(Echo { id: r.u32()?, size: r.u16()?, class: r.u8()? }))
    }
}

/// Far end: so the question came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echoed {
    pub id: u32,
    /// [IP bytes]
    pub size: u16,
    pub class: u8,
    /// When the question came, and when this leaves, by the far end's clock [ns].
    pub came: Nanos,
    pub leaves: Nanos,
}

impl Echoed {
    pub fn encode(&self) -> Vec<u8> {
        let Echoed { id, size, class, came, leaves } = self;
        let mut out = [&id.to_be_bytes()[..], &size.to_be_bytes(), &[*class]].concat();
        out.extend([came.0.to_be_bytes(), leaves.0.to_be_bytes()].concat());
        out
    }
    pub fn decode(body: &[u8]) -> Option<Echoed> {
        let read = |r: &mut Reader<'_>| {
            Some(Echoed { id: r.u32()?, size: r.u16()?, class: r.u8()?, came: r.time()?, leaves: r.time()? })
        };
        whole(body, read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back() {
        let echo = Echo { id: 7, size: 1500, class: 0xb9 };
        let echoed = Echoed { id: 7, size: 1400, class: 2, came: Nanos(9), leaves: Nanos(10) };
        assert_eq!((Echo::decode(&echo.encode()), Echoed::decode(&echoed.encode())), (Some(echo), Some(echoed)));
        assert_eq!((Echo::decode(&[0; 8]), Echoed::decode(&[0xff; 23])), (None, None));
    }
}
