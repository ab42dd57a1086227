//! Whole numbers with a range of their own: what is not even a `u32` is refused with that range too, not with the type's.

use std::fmt;

use serde::de::{self, Deserializer, Unexpected, Visitor};

struct Whole {
    low: u32,
    high: u32,
}

impl Visitor<'_> for Whole {
    type Value = u32;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number, {} to {}", self.low, self.high)
    }
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<u32, E> {
        u32::try_from(n).map_err(|_| E::invalid_value(Unexpected::Unsigned(n), &self))
    }
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<u32, E> {
        u32::try_from(n).map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
    }
}

/// A number that the checks hold to `LOW` to `HIGH`, if it is given.
pub(crate) fn whole<'de, const LOW: u32, const HIGH: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    needed::<LOW, HIGH, D>(deserializer).map(Some)
}

/// One that has to be given.
pub(crate) fn needed<'de, const LOW: u32, const HIGH: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<u32, D::Error> {
    deserializer.deserialize_u32(Whole { low: LOW, high: HIGH })
}
