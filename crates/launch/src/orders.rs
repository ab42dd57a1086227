//! What the connections of a run are told, as the bytes that the eBPF program reads (`struct orders`).

/// TCP_CA_NAME_MAX: a controller's name and the 0 behind it.
const NAME_BYTES: usize = 16;

/// A controller that the kernel has (empty: none), a bound for the rate of each connection [byte/s], and a number other
/// than that of the orders before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders<'a> {
    pub control: &'a str,
    pub pace: Option<u32>,
    pub number: u32,
}

impl Orders<'_> {
    pub fn bytes(&self) -> [u8; NAME_BYTES + 8] {
        let mut bytes = [0; NAME_BYTES + 8];
        let name = &self.control.as_bytes()[..self.control.len().min(NAME_BYTES - 1)];
        bytes[..name.len()].copy_from_slice(name);
        bytes[NAME_BYTES..NAME_BYTES + 4].copy_from_slice(&self.pace.unwrap_or(u32::MAX).to_ne_bytes());
        bytes[NAME_BYTES + 4..].copy_from_slice(&self.number.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_a_zero_and_no_bound_is_all_ones() {
        let bytes = Orders { control: "a-name-that-is-too-long", pace: None, number: 7 }.bytes();
        assert_eq!(&bytes[..16], b"a-name-that-is-\0");
        assert_eq!(&bytes[16..20], &[0xff; 4]);
        assert_eq!(bytes[20..], 7u32.to_ne_bytes());
    }
}
