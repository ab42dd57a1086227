//! `Nanos`, `Rate` and `Bytes`: integers inside, `73ms`, `5Mbit`, `150KB` in files and on the command line.
//!
//! Written forms: durations `ns us µs ms s m h d`, compound (`1m30s`) too; rates in bits per second `bit kbit Mbit Gbit Tbit`
//! (decimal); sizes `B`, decimal `kB KB MB GB TB` and binary `KiB MiB GiB TiB`. Other forms with one meaning are understood
//! (`30min`, `300G`, `300gb`, `5Mbps`, `5Mbit/s`); bytes in place of bits, or bits in place of bytes, are refused as such. A
//! number without a unit is refused, because 1000 of what is the commonest mistake in such files.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: {reason}; write it as {examples}")]
pub struct QuantityError {
    text: String,
    what: &'static str,
    reason: &'static str,
    examples: &'static str,
}

/// A time or a duration [ns].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A rate [bit/s].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// A size [byte].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Nanos {
    /// The end of time: later than every event.
    pub const MAX: Nanos = Nanos(u64::MAX);
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// `us` microseconds.
    pub const fn micros(us: u64) -> Self {
        Nanos(us * 1_000)
    }
    /// `ms` milliseconds.
    pub const fn millis(ms: u64) -> Self {
        Nanos(ms * 1_000_000)
    }
    /// `s` seconds.
    pub const fn secs(s: u64) -> Self {
        Nanos(s * 1_000_000_000)
    }
    /// From seconds, rounded to the nanosecond; negative and NaN become 0, too large `MAX`.
    pub fn from_secs_f64(s: f64) -> Self {
        Nanos((s * 1e9).round() as u64)
    }
    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self - other`, or zero where that is negative.
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}
impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}
impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, n: u64) -> Nanos {
        Nanos(self.0 * n)
    }
}

impl Rate {
    /// How long `bytes` take at this rate, rounded up to the nanosecond. The rate must not be zero.
    pub fn time_for(self, bytes: u64) -> Nanos {
        // 64 bits are enough up to 2.3 GB, and u128 division costs several times as much
        match bytes.checked_mul(8_000_000_000) {
            Some(bits) => Nanos(bits.div_ceil(self.0)),
            None => Nanos((u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0)) as u64),
        }
    }
    /// How many whole bytes fit in `time` at this rate.
    pub fn bytes_in(self, time: Nanos) -> u64 {
        (u128::from(self.0) * u128::from(time.0) / 8_000_000_000) as u64
    }
}

struct Unit {
    name: &'static str,
    size: u64,
}
const fn unit(name: &'static str, size: u64) -> Unit {
    Unit { name, size }
}

/// What a kind of quantity is called and written in. The first name of a size is how it is printed.
struct Kind {
    what: &'static str,
    examples: &'static str,
    units: &'static [Unit],
    /// What people write besides; schemas do not offer it.
    also: &'static [Unit],
    /// Why a unit is that of another kind.
    mistaken: fn(&str) -> Option<&'static str>,
    /// The unit of nothing.
    zero: &'static str,
    compound: bool,
}

const DURATION: Kind = Kind {
    what: "duration",
    examples: "`250us`, `73ms`, `1.5s` or `1m30s`",
    units: &[
        unit("ns", 1),
        unit("us", 1_000),
        unit("µs", 1_000),
        unit("ms", 1_000_000),
        unit("s", 1_000_000_000),
        unit("m", 60_000_000_000),
        unit("h", 3_600_000_000_000),
        unit("d", 86_400_000_000_000),
    ],
    also: &[
        unit("sec", 1_000_000_000),
        unit("min", 60_000_000_000),
        unit("hour", 3_600_000_000_000),
        unit("hours", 3_600_000_000_000),
        unit("day", 86_400_000_000_000),
        unit("days", 86_400_000_000_000),
    ],
    mistaken: |_| None,
    zero: "s",
    compound: true,
};
const RATE: Kind = Kind {
    what: "rate",
    examples: "`100kbit`, `5Mbit` or `1.5Gbit` (bits per second)",
    units: &[
        unit("bit", 1),
        unit("kbit", 1_000),
        unit("Kbit", 1_000),
        unit("Mbit", 1_000_000),
        unit("Gbit", 1_000_000_000),
        unit("Tbit", 1_000_000_000_000),
    ],
    also: &[
        unit("bps", 1),
        unit("kbps", 1_000),
        unit("Kbps", 1_000),
        unit("Mbps", 1_000_000),
        unit("Gbps", 1_000_000_000),
        unit("Tbps", 1_000_000_000_000),
        unit("bit/s", 1),
        unit("kbit/s", 1_000),
        unit("Mbit/s", 1_000_000),
        unit("Gbit/s", 1_000_000_000),
        unit("Tbit/s", 1_000_000_000_000),
        unit("mbit", 1_000_000),
        unit("gbit", 1_000_000_000),
    ],
    mistaken: |name| name.contains('B').then_some("rates are in bits, not in bytes"),
    zero: "bit",
    compound: false,
};
const SIZE: Kind = Kind {
    what: "size",
    examples: "`1500B`, `64KB`, `256MB` or `16MiB`",
    units: &[
        unit("B", 1),
        unit("kB", 1_000),
        unit("KB", 1_000),
        unit("KiB", 1 << 10),
        unit("MB", 1_000_000),
        unit("MiB", 1 << 20),
        unit("GB", 1_000_000_000),
        unit("GiB", 1 << 30),
        unit("TB", 1_000_000_000_000),
        unit("TiB", 1 << 40),
    ],
    also: &[
        unit("k", 1_000),
        unit("K", 1_000),
        unit("M", 1_000_000),
        unit("G", 1_000_000_000),
        unit("T", 1_000_000_000_000),
        unit("kb", 1_000),
        unit("mb", 1_000_000),
        unit("gb", 1_000_000_000),
        unit("tb", 1_000_000_000_000),
    ],
    mistaken: |name| {
        let bits = name.to_ascii_lowercase().contains("bit") || name.ends_with('b');
        bits.then_some("sizes are in bytes, not in bits")
    },
    zero: "B",
    compound: false,
};

/// Exact decimal arithmetic: `whole.fraction` times `size`, or `None` when it does not fit.
fn scaled(number: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut total =
        u128::from(size).checked_mul(if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.into() })?;
    let mut part = u128::from(size) * 1_000_000_000;
    for digit in fraction.bytes() {
        part /= 10;
        total += part * u128::from(digit - b'0') / 1_000_000_000;
    }
    u64::try_from(total).ok()
}

fn parse(text: &str, kind: &Kind) -> Result<u64, QuantityError> {
    let fail = |reason| QuantityError { text: text.into(), what: kind.what, reason, examples: kind.examples };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(fail("it is empty"));
    }
    if rest.starts_with('-') {
        return Err(fail("it is negative"));
    }
    if rest == "0" {
        return Ok(0);
    }
    let mut total: u64 = 0;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        if !number.bytes().any(|b| b.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Err(fail("it does not start with a number"));
        }
        let after = after.trim_start();
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, tail) = after.split_at(letters);
        let name = name.trim_end();
        if name.is_empty() {
            return Err(fail("the unit is missing"));
        }
        let known = kind.units.iter().chain(kind.also).find(|u| u.name == name);
        let unit = known.ok_or_else(|| match name {
            "e" | "E" | "e-" | "E-" | "e+" | "E+" if !tail.is_empty() => fail("numbers have no exponent here"),
            _ => fail((kind.mistaken)(name).unwrap_or("the unit is unknown")),
        })?;
        parts += 1;
        if parts > 1 && !kind.compound {
            return Err(fail("only one unit is allowed"));
        }
        let value = scaled(number, unit.size).ok_or_else(|| fail("it is too large"))?;
        total = total.checked_add(value).ok_or_else(|| fail("it is too large"))?;
        rest = tail;
    }
    Ok(total)
}

/// The largest unit that divides `value`; reads back to the same integer.
fn write(value: u64, kind: &Kind, names: &[&str], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value == 0 {
        return write!(f, "0{}", kind.zero);
    }
    let unit = kind
        .units
        .iter()
        .filter(|u| names.contains(&u.name))
        .rev()
        .find(|u| value.is_multiple_of(u.size))
        .expect("every kind has a unit of size 1");
    write!(f, "{}{}", value / unit.size, unit.name)
}

macro_rules! quantity {
    ($type:ident, $kind:ident, $names:expr) => {
        impl FromStr for $type {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<Self, QuantityError> {
                parse(text, &$kind).map($type)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write(self.0, &$kind, $names, f)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "a {} such as {}", $kind.what, $kind.examples)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units: Vec<&str> = $kind.units.iter().map(|u| u.name).collect();
                let one = format!(r"\d+(\.\d+)?\s*({})", units.join("|"));
                let pattern = if $kind.compound { format!("^(0|({one})+)$") } else { format!("^(0|{one})$") };
                json_schema!({
                    "type": "string",
                    "pattern": pattern,
                    "description": format!("a {} such as {}", $kind.what, $kind.examples),
                })
            }
        }
    };
}
quantity!(Nanos, DURATION, &["ns", "us", "ms", "s"]);
quantity!(Rate, RATE, &["bit", "kbit", "Mbit", "Gbit", "Tbit"]);
quantity!(Bytes, SIZE, &["B", "KB", "MB", "GB", "TB"]);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn written_forms() {
        assert_eq!("73ms".parse(), Ok(Nanos::millis(73)));
        assert_eq!("1m30s".parse(), Ok(Nanos::secs(90)));
        assert_eq!("1.5s".parse(), Ok(Nanos::millis(1500)));
        assert_eq!("250 us".parse(), Ok(Nanos::micros(250)));
        assert_eq!("0".parse(), Ok(Nanos(0)));
        assert_eq!("5Mbit".parse(), Ok(Rate(5_000_000)));
        assert_eq!("0.1Mbit".parse(), Ok(Rate(100_000)));
        assert_eq!("150KB".parse(), Ok(Bytes(150_000)));
        assert_eq!("150kB".parse(), Ok(Bytes(150_000)));
        assert_eq!("16MiB".parse(), Ok(Bytes(16 << 20)));
        assert_eq!(Bytes(1_500_000).to_string(), "1500KB");
        assert_eq!(Rate(0).to_string(), "0bit");
        assert_eq!(Bytes(0).to_string(), "0B");
        assert_eq!(Nanos(0).to_string(), "0s");
    }

    #[test]
    fn what_people_write_is_understood_where_it_has_one_meaning() {
        for text in ["300G", "300gb", "300 GB", "300000M"] {
            assert_eq!(text.parse(), Ok(Bytes(300_000_000_000)), "{text}");
        }
        for text in ["30min", "1800sec", "0.5hour", "30m"] {
            assert_eq!(text.parse(), Ok(Nanos::secs(1800)), "{text}");
        }
        assert_eq!("1d2h30min".parse(), Ok(Nanos::secs(95_400)));
        for text in ["5Mbps", "5Mbit/s", "5mbit", "5000kbps"] {
            assert_eq!(text.parse(), Ok(Rate(5_000_000)), "{text}");
        }
        for text in ["300Gb", "300Gbit", "300GBit"] {
            assert!(text.parse::<Bytes>().unwrap_err().to_string().contains("bytes, not in bits"), "{text}");
        }
        for text in ["5MB/s", "5MB"] {
            assert!(text.parse::<Rate>().unwrap_err().to_string().contains("bits, not in bytes"), "{text}");
        }
        // millions of what, and milli or mega
        assert!("5M".parse::<Rate>().is_err() && "5mbps".parse::<Rate>().is_err());
    }

    #[test]
    fn refusals_name_the_value_and_the_form() {
        for (text, reason) in [
            ("5", "the unit is missing"),
            ("5Mb", "the unit is unknown"),
            ("1e3Mbit", "numbers have no exponent here"),
            ("1.5E-3Mbit", "numbers have no exponent here"),
            ("1e", "the unit is unknown"),
            ("-5Mbit", "it is negative"),
            ("", "it is empty"),
            ("fast", "it does not start with a number"),
            ("1.2.3Mbit", "it does not start with a number"),
            ("1Mbit5kbit", "only one unit is allowed"),
            ("99999999999Tbit", "it is too large"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains(&format!("`{text}`")) && error.contains("5Mbit"),
                "{error}"
            );
        }
    }

    #[test]
    fn transmission_times() {
        assert_eq!(Rate(1_000_000_000).time_for(1500), Nanos(12_000));
        assert_eq!(Rate(3).time_for(1), Nanos(2_666_666_667));
        assert_eq!(Rate(1_000_000).bytes_in(Nanos::secs(2)), 250_000);
        assert_eq!(Rate(1).time_for(1 << 31), Nanos((1 << 31) * 8_000_000_000));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n in any::<u64>()) {
            prop_assert_eq!(Nanos(n).to_string().parse(), Ok(Nanos(n)));
            prop_assert_eq!(Rate(n).to_string().parse(), Ok(Rate(n)));
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        }
        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = (text.parse::<Nanos>(), text.parse::<Rate>(), text.parse::<Bytes>());
        }
        #[test]
        fn bytes_fit_in_their_time(rate in 1u64..1_000_000_000_000, bytes in 0u64..1_000_000_000) {
            prop_assert!(Rate(rate).bytes_in(Rate(rate).time_for(bytes)) >= bytes);
        }
    }
}
