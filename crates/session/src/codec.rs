//! What both protocols' messages are made of: whole numbers of fixed and of variable length (seven bits a byte, the lowest
//! first: LEB128), texts, and the reading of whole bodies.

use pathcast_base::Nanos;

/// No clock shows more [ns]: what is later, by the year 2116, nobody has measured, and differences below it are 64 bits.
pub const LATEST: Nanos = Nanos(1 << 62);

/// Appends a whole number; small ones are short.
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a text of at most 255 bytes behind its length.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Signed numbers near zero are small ones: 0, -1, 1, -2, …
pub fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// What [`zigzag`] was made of.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// What is left of a body. Every reading takes bytes from its front; none: there are too few, or they are not such a value.
#[derive(Clone)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads `body` from its start.
    pub fn new(body: &'a [u8]) -> Self {
        Reader(body)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `n` bytes.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    /// As many bytes as the array has.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// Two bytes, the highest first.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes, the highest first.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes, the highest first.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of IEEE 754, any.
    pub fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// A reading of a clock: at most [`LATEST`].
    pub fn time(&mut self) -> Option<Nanos> {
        self.u64().map(Nanos).filter(|&time| time <= LATEST)
    }

    /// A byte that is 0 or 1.
    pub fn flag(&mut self) -> Option<bool> {
        self.u8().filter(|&byte| byte < 2).map(|byte| byte == 1)
    }

    /// What [`push_varint`] wrote; none for what it would not write.
    pub fn varint(&mut self) -> Option<u64> {
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

    /// What [`push_text`] wrote: at most `max` visible ASCII characters.
    pub fn text(&mut self, max: usize) -> Option<String> {
        let n = usize::from(self.u8()?);
        let bytes = self.take(n)?;
        (n <= max && bytes.iter().all(u8::is_ascii_graphic)).then(|| bytes.iter().map(|b| char::from(*b)).collect())
    }
}

/// Reads a whole body: none if `read` fails or leaves something over.
pub fn whole<'a, T>(body: &'a [u8], read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<T> {
    let mut reader = Reader::new(body);
    read(&mut reader).filter(|_| reader.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value in any::<u64>(), shift in 0u32..64) {
            let mut out = Vec::new();
            push_varint(&mut out, value >> shift);
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
