//! Written quantities: what is understood reads back as it is printed.

use std::fmt::Display;
use std::str::FromStr;

use pathcast_base::{Bytes, Nanos, Rate};

fn read<T: FromStr<Err: Display> + Display + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(quantity) => assert!(quantity.to_string().parse().is_ok_and(|again: T| again == quantity), "{quantity}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    read::<Nanos>(text);
    read::<Rate>(text);
    read::<Bytes>(text);
}
