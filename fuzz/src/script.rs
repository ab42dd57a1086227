//! The fuzzer's bytes, taken one after the other.

use pathcast_base::Nanos;

pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    pub fn flag(&mut self) -> Option<bool> {
        self.byte().map(|byte| byte & 1 == 1)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// As many as the next byte says, if there are so many.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.0.len());
        let (head, tail) = self.0.split_at(length);
        self.0 = tail;
        Some(head)
    }

    /// From 1 ns to half a minute.
    pub fn time(&mut self) -> Option<Nanos> {
        let byte = self.byte()?;
        Some(Nanos((4 + u64::from(byte) % 4) << (u64::from(byte) / 4 % 33)))
    }

    /// Mostly small.
    pub fn number(&mut self) -> Option<u64> {
        match self.byte()? {
            255 => self.u64(),
            small => Some(small.into()),
        }
    }
}
