//! Stamps and error estimates as they travel (RFC 8762 section 4.2.1; NTP: RFC 5905 section 6; PTPv2, truncated: RFC 8186).

use pathcast_base::Nanos;

/// From 1900, where NTP counts from, to 1970 [s].
const NTP_EPOCH: u64 = 2_208_988_800;
const SECOND: u64 = 1_000_000_000;

/// How a stamp is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Seconds since 1900 and their fraction, 32 bits each.
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds, 32 bits each. Whether the seconds count leap seconds is not said in the packet.
    Ptp,
}

impl Format {
    /// A time since 1970 as it travels.
    pub fn write(self, time: Nanos) -> u64 {
        let (seconds, nanos) = (time.0 / SECOND, time.0 % SECOND);
        match self {
            Format::Ntp => ((seconds + NTP_EPOCH) << 32) | (((nanos << 32) + SECOND / 2) / SECOND),
            Format::Ptp => (seconds << 32) | nanos,
        }
    }

    /// The time since 1970 that is written as this and is nearest to `near`: seconds have 32 bits only.
    pub fn read(self, stamp: u64, near: Nanos) -> Nanos {
        let (seconds, rest) = (stamp >> 32, stamp & 0xffff_ffff);
        let (seconds, nanos) = match self {
            Format::Ntp => (seconds.wrapping_sub(NTP_EPOCH), (rest * SECOND + (1 << 31)) >> 32),
            Format::Ptp => (seconds, rest),
        };
        let here = near.0 / SECOND;
        let ahead = i64::from((seconds as u32).wrapping_sub(here as u32) as i32);
        Nanos(here.saturating_add_signed(ahead).saturating_mul(SECOND).saturating_add(nanos))
    }
}

/// What a host says of its clock: `multiplier · 2^(scale - 32)` seconds is the largest error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// Whether the clock is kept right by an outer source.
    pub synchronised: bool,
    /// How the stamps beside it are written.
    pub format: Format,
    /// 0 to 63.
    pub scale: u8,
    /// 0: nothing is known, against the rule.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The least estimate that is not below `error`.
    pub fn new(synchronised: bool, format: Format, error: Nanos) -> ErrorEstimate {
        let units = (u128::from(error.0) << 32).div_ceil(u128::from(SECOND)).max(1);
        // 2^64 ns are less than 2^67 units: the scale has bits enough
        let scale = (128 - units.leading_zeros()).saturating_sub(8);
        let multiplier = units.div_ceil(1 << scale);
        let (scale, multiplier) =
            if multiplier > 255 { (scale + 1, multiplier.div_ceil(2)) } else { (scale, multiplier) };
        ErrorEstimate { synchronised, format, scale: scale as u8, multiplier: multiplier as u8 }
    }

    /// The largest error; none if nothing is known of it.
    pub fn error(self) -> Option<Nanos> {
        let units = u128::from(self.multiplier) << self.scale;
        let nanos = (units * u128::from(SECOND)) >> 32;
        (self.multiplier > 0).then(|| Nanos(nanos.min(u128::from(u64::MAX)) as u64))
    }

    /// As it travels.
    pub fn to_bits(self) -> u16 {
        let flags = u16::from(self.synchronised) << 15 | u16::from(self.format == Format::Ptp) << 14;
        flags | u16::from(self.scale & 63) << 8 | u16::from(self.multiplier)
    }

    /// As it travels.
    pub fn from_bits(bits: u16) -> ErrorEstimate {
        ErrorEstimate {
            synchronised: bits & 1 << 15 != 0,
            format: if bits & 1 << 14 != 0 { Format::Ptp } else { Format::Ntp },
            scale: (bits >> 8) as u8 & 63,
            multiplier: bits as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_stamps() {
        assert_eq!(Format::Ntp.write(Nanos(500_000_000)), 0x83aa_7e80_8000_0000);
        assert_eq!(Format::Ptp.write(Nanos::secs(2) + Nanos(7)), 0x0000_0002_0000_0007);
        // the second NTP era begins on 7 February 2036
        let era = Nanos::secs((1 << 32) - NTP_EPOCH);
        assert_eq!(Format::Ntp.write(era), 0);
        assert_eq!(Format::Ntp.read(0, era), era);
        assert_eq!(Format::Ntp.read(u64::from(u32::MAX) << 32, era), era - Nanos::secs(1));
    }

    #[test]
    fn known_estimates() {
        // 2^-32 s is the unit
        assert_eq!(ErrorEstimate::new(true, Format::Ntp, Nanos(0)).to_bits(), 0x8001);
        assert_eq!(ErrorEstimate::new(false, Format::Ptp, Nanos::secs(1)).to_bits(), 0x4000 | 25 << 8 | 128);
        assert_eq!(ErrorEstimate::from_bits(0x8000).error(), None);
        assert_eq!(ErrorEstimate::from_bits(0x2001).error(), Some(Nanos::secs(1)));
    }

    proptest! {
        #[test]
        fn stamps_read_back(time in 0u64..u64::MAX / 2, off in -1_000_000_000_000_000_000i64..1_000_000_000_000_000_000) {
            let near = Nanos(time.saturating_add_signed(off));
            for format in [Format::Ntp, Format::Ptp] {
                prop_assert_eq!(format.read(format.write(Nanos(time)), near), Nanos(time));
            }
        }
        #[test]
        fn any_stamp_can_be_read(stamp: u64, near: u64, ptp: bool) {
            let format = if ptp { Format::Ptp } else { Format::Ntp };
            format.read(stamp, Nanos(near));
        }
        #[test]
        fn estimates_read_back(bits: u16) {
            prop_assert_eq!(ErrorEstimate::from_bits(bits).to_bits(), bits);
            ErrorEstimate::from_bits(bits).error();
        }
        #[test]
        fn an_estimate_is_not_too_small_and_hardly_too_large(error: u64) {
            let told = ErrorEstimate::new(true, Format::Ntp, Nanos(error)).error().unwrap();
            prop_assert!(told.0 >= error.saturating_sub(1));
            prop_assert!(told.0 as f64 <= error as f64 * (1.0 + 1.0 / 127.0) + 1.0, "{} for {}", told.0, error);
        }
    }
}
