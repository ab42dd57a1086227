//! Whole numbers of variable length: seven bits a byte, the lowest first (LEB128), and the reading of whole bodies.

use pathcast_base::Nanos;

use crate::session::Reader;

/// No clock shows more [ns]: what is later, by the year 2116, nobody has measured, and differences below it are 64 bits.
pub(super) const LATEST: Nanos = Nanos(1 << 62);

/// Appends a whole number; small ones are short.
pub(super) fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Signed numbers near zero are small ones: 0, -1, 1, -2, …
pub(super) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl Reader<'_> {
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A reading of a clock.
    pub(super) fn time(&mut self) -> Option<Nanos> {
        self.u64().map(Nanos).filter(|&time| time <= LATEST)
    }

    pub(super) fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// What [`push`] wrote; none for what it would not write.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.u8().filter(|&byte| byte < 2).map(|byte| byte == 1)
    }
}

/// Reads a whole body: none if `read` fails or leaves something over.
pub(super) fn whole<'a, T>(body: &'a [u8], read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<T> {
    let mut reader = Reader(body);
    read(&mut reader).filter(|_| reader.0.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value in any::<u64>(), shift in 0u32..64) {
            let mut out = Vec::new();
            push(&mut out, value >> shift);
            prop_assert_eq!(whole(&out, |r| r.varint()), Some(value >> shift));
            prop_assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
        }
    }

    #[test]
    fn a_number_too_large_is_none() {
        assert_eq!(whole(&[0xff; 10], |r| r.varint()), None);
        assert_eq!(whole(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], |r| r.varint()), None);
    }
}
