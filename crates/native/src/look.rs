//! What lies between, for Python: parameters read, documents written.

use std::net::SocketAddr;
use std::time::Duration;

use pathcast_base::{Nanos, PathAddr};
use pathcast_measure::stamp::{Mode, SenderOptions, StampKey};
use pathcast_measure::{EchoRequest, Echoes};
use pathcast_net::udp::{DriveOptions, SessionClock, drive, stamp_measure};
use pathcast_net::{Key, SocketMaker, entropy};
use serde::Deserialize;

use crate::client::Job;
use crate::error::{Failed, json, read};

/// As `pathcast.worlds.host.Host.echo` writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    path: PathAddr,
    sizes: Option<[u16; 2]>,
    classes: Vec<u8>,
    patience_s: f64,
}

/// A time that Python gave; nonsense is none at all.
pub fn seconds(time_s: f64) -> Duration {
    Duration::try_from_secs_f64(time_s).unwrap_or_default()
}

/// What becomes of packets over a path; see [`Echoes`].
pub fn echo(sockets: &dyn SocketMaker, port: u16, key: Key, job: &Job, request: &str) -> Result<String, Failed> {
    let Request { path, sizes, classes, patience_s } = read(request)?;
    let clock = SessionClock::start();
    let patience = Nanos::from_secs_f64(patience_s);
    let request = EchoRequest { key, sizes, classes, patience, clock: clock.state() };
    let mut machine = Echoes::new(request, entropy().map_err(Failed::new)?);
    let options = DriveOptions { clock, cancel: Some(&job.cancelled), on_progress: None, urgent: true, fabric: None };
    let driven = drive(sockets, &[path], port, &mut machine, options).map_err(Failed::new)?;
    Ok(String::from_utf8(driven.result).unwrap_or_default())
}

/// Asks the far end's STAMP reflector a few times, with the key and, where that has no answer, without: how many answers.
pub fn stamp(sockets: &dyn SocketMaker, port: u16, key: &Key, path: &PathAddr, wait: Nanos) -> Result<String, Failed> {
    let mut received = 0;
    for mode in [Mode::Authenticated(StampKey::of(key)), Mode::Open] {
        if received == 0 {
            let sender =
                SenderOptions { count: 3, interval: Nanos::millis(50), wait, mode, ..SenderOptions::default() };
            let to = SocketAddr::new(path.remote, port);
            let report = stamp_measure(sockets, Some(path.local), to, sender, DriveOptions::default());
            received = report.map_err(Failed::new)?.received;
        }
    }
    Ok(json(&received))
}
