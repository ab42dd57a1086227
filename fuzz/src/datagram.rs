//! Datagrams of a measurement, and the bodies of all its messages.

use pathcast_measure::forge;

pub fn run(data: &[u8]) {
    forge::read(data);
}
