//! How exactly trains leave: the errors of their gaps at several rates, over virtual devices between two namespaces, by the
//! stamps at both ends. Needs root.
//!
//! ```text
//! cargo run --release -p pathcast-net --example train_gaps -- [plain]
//! ```
//! `plain`: without real-time scheduling and without keeping the processors awake.

#[path = "../tests/common/netns.rs"]
#[allow(dead_code)]
mod netns;

use pathcast_base::{Nanos, Rate};
use pathcast_measure::machine::{Action, Event, Machine, Train};
use pathcast_measure::{FarAction, FarEvent};
use pathcast_net::PathAddr;
use pathcast_net::udp::{DriveOptions, FarAddress, FarMachine, FarOptions, FarServer, SessionClock, drive};

const SIZE: u16 = 1500;
const PORT: u16 = 5275;
const TRAINS: u64 = 20;

/// Sends trains one after the other and keeps the stamps of what left.
struct Sender {
    rate: Rate,
    packets: usize,
    train: u64,
    told: usize,
    sent: Vec<(u64, Nanos)>,
    wants: Vec<Action>,
}

impl Sender {
    fn number(&self, i: usize) -> u64 {
        self.train * self.packets as u64 + i as u64
    }
}

impl Machine for Sender {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Sent { seq, at, .. } => self.sent.push((seq, at)),
            Event::Unsent { .. } | Event::Started => {}
            _ => return,
        }
        self.told += usize::from(event != Event::Started);
        if event == Event::Started || self.told == self.packets {
            (self.told, self.train) = (0, self.train + u64::from(event != Event::Started));
            let at = now + Nanos::millis(5);
            let train = Train::paced(0, self.number(0), at, self.packets, self.rate, SIZE);
            self.wants.push(match self.train {
                TRAINS => Action::Done(Vec::new()),
                _ => Action::SendTrain(train.with_heads(8, |seq, head| head.copy_from_slice(&seq.to_be_bytes()))),
            });
        }
    }
    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.wants.pop()
    }
}

/// Keeps the stamps of what arrives.
#[derive(Default)]
struct Receiver(Vec<(u64, Nanos)>);

impl FarMachine for Receiver {
    fn handle(&mut self, _now: Nanos, event: FarEvent<'_, FarAddress>) {
        if let FarEvent::Received { packet, at, .. } = event {
            self.0.extend(packet.first_chunk().map(|seq| (u64::from_be_bytes(*seq), at)));
        }
    }
    fn next(&mut self, _now: Nanos) -> Option<FarAction<FarAddress>> {
        None
    }
    fn sessions(&self) -> usize {
        0
    }
}

/// Median, 99th percentile and largest of the gaps' errors [µs], and of how many.
fn errors(stamps: &mut [(u64, Nanos)], packets: u64, gap: f64) -> String {
    stamps.sort_unstable();
    let follow = |pair: &&[(u64, Nanos)]| pair[1].0 == pair[0].0 + 1 && !pair[1].0.is_multiple_of(packets);
    let error = |pair: &[(u64, Nanos)]| (pair[1].1.0 as f64 - pair[0].1.0 as f64 - gap).abs() / 1e3;
    let mut all: Vec<f64> = stamps.windows(2).filter(follow).map(error).collect();
    all.sort_by(f64::total_cmp);
    if all.is_empty() {
        return "nothing".into();
    }
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    format!("{:9.2} {:9.2} {:9.2} µs of {} gaps", at(0.5), at(0.99), at(1.0), all.len())
}

fn main() {
    let urgent = std::env::args().nth(1).as_deref() != Some("plain");
    let Some(net) = netns::Net::new("train_gaps") else { return };
    let path = PathAddr::new("path", "10.7.1.1".parse().unwrap(), "10.7.3.1".parse().unwrap());
    println!("packets of {SIZE} bytes, {TRAINS} trains a rate; error of the gaps: median, p99, largest");
    for (rate, packets) in [(5_000_000, 20), (100_000_000, 100), (1_000_000_000, 100)] {
        let options = FarOptions {
            listen: vec![format!("0.0.0.0:{PORT}").parse().unwrap()],
            clock: SessionClock::start(),
            urgent,
        };
        let far = FarServer::start(&*net.server(), options, Receiver::default()).unwrap();
        let rate = Rate(rate);
        let mut sender = Sender { rate, packets, train: 0, told: 0, sent: Vec::new(), wants: Vec::new() };
        let options = DriveOptions { urgent, ..DriveOptions::default() };
        let driven = drive(&*net.client(), std::slice::from_ref(&path), PORT, &mut sender, options).unwrap();
        let gap = rate.time_for(SIZE.into()).0 as f64;
        let mut arrived = far.with(|receiver| receiver.0.clone());
        println!("{rate:>8}  left    {}", errors(&mut sender.sent, packets as u64, gap));
        println!("          arrived {}", errors(&mut arrived, packets as u64, gap));
        println!("          {:?}", driven.tally);
    }
}
