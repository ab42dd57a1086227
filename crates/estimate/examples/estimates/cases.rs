//! Random paths that span what the estimators are for, and the classes that a path belongs to.

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_estimate::Budget;
use pathcast_link::{Fair, Queue};

use super::tcp::Tcp;
use super::traffic;
use super::world::Path;

/// A path and what may be spent on it.
pub struct Case {
    pub path: Path,
    pub budget: Budget,
    pub traffic: &'static str,
    /// Mean rate of the cross traffic that does not respond, as a share of its link.
    pub load: f64,
    pub loss: f64,
}

const TRAFFIC: [&str; 6] = ["idle", "constant", "Poisson", "Pareto on/off", "TCP long", "TCP on/off"];

/// One class for each thing that differs: its name, and the class.
pub type Classes = [(&'static str, &'static str); 9];

/// 1/`of` apart on a logarithmic scale.
fn log(s: &mut Stream, low: f64, high: f64) -> f64 {
    (s.between(low.ln(), high.ln())).exp()
}

impl Case {
    /// The case of a seed: everything is drawn on its own.
    pub fn random(seed: u64) -> Case {
        let s = &mut Stream::new(seed, "case");
        let rate = log(s, 100e3, 1e9);
        let rtt = log(s, 1e-3, 0.6);
        let queue = log(s, 8.0, 1000.0) as u32;
        let traffic = TRAFFIC[(s.uniform() * TRAFFIC.len() as f64) as usize];
        let load = s.between(0.02, 0.9);
        let cross = (rate * load) as u64;
        let packet = [1500, 1500, 600, 200][(s.uniform() * 4.0) as usize];
        let (mut path, load) = match traffic {
            "constant" => (Path::one(Rate(rate as u64), queue, traffic::constant(cross, packet)), load),
            "Poisson" => (Path::one(Rate(rate as u64), queue, traffic::poisson(cross, packet)), load),
            "Pareto on/off" => {
                let peak = ((rate * s.between(load, 1.0)) as u64).max(cross + 1);
                // at least a few packets long
                let on = s.between(0.02, 0.2).max(5.0 * 12_000.0 / peak as f64);
                (Path::one(Rate(rate as u64), queue, traffic::onoff(cross, peak, Nanos::from_secs_f64(on))), load)
            }
            _ => (Path::one(Rate(rate as u64), queue, vec![]), 0.0),
        };
        match traffic {
            "TCP long" => path.tcp = (0..1 + (s.uniform() * 4.0) as usize).map(|_| tcp(s, None)).collect(),
            "TCP on/off" => {
                let mean = log(s, 10.0, 300.0);
                // one transfer alone takes a tenth to half of the line's time
                let pause = mean * 12_000.0 / rate / s.between(0.1, 0.5);
                let transfers = Some((mean, Nanos::from_secs_f64(pause)));
                path.tcp = (0..2 + (s.uniform() * 3.0) as usize).map(|_| tcp(s, transfers)).collect();
            }
            _ => {}
        }
        path.delay = Nanos::from_secs_f64(rtt / 2.0);
        path.access = Rate(((rate * 2.5) as u64).max(100_000_000));
        path.receiver.skew_ppm = s.between(-100.0, 100.0);
        path.receiver.noise = Nanos::micros(20);
        if s.chance(0.5) {
            path.receiver.gather = Nanos::from_secs_f64(s.between(50e-6, 250e-6));
        }
        let loss = if s.chance(0.5) { log(s, 1e-3, 0.05) } else { 0.0 };
        path.hops[0].params.loss = loss.into();
        if s.chance(0.25) {
            path.stalls = (s.between(5.0, 50.0), Nanos::millis(5));
        }
        if s.chance(0.25) {
            // before the shared link or behind it, narrow or not
            let other = (rate * log(s, 0.3, 3.0)) as u64;
            let hop = Path::one(Rate(other), queue, vec![]).hops[0].clone();
            let before = path.tcp.is_empty() && s.chance(0.5);
            path.hops.insert(usize::from(!before), hop);
        }
        if s.chance(0.08) {
            for hop in &mut path.hops {
                hop.params.queue = Queue::Fair(Fair { packets: queue, quantum: Bytes(1514) });
            }
        }
        let narrow = path.hops.iter().filter_map(|hop| hop.params.rate).min().unwrap_or_default().0 as f64;
        let time = 3.0 + 4.0 * rtt + 1.7e6 / narrow;
        let bytes = (0.55 * time * narrow / 8.0).clamp(150e3, 10e6);
        let budget = Budget { bytes: Bytes(bytes as u64), time: Nanos::from_secs_f64(time) };
        Case { path, budget, traffic, load, loss }
    }

    pub fn fair(&self) -> bool {
        self.path.hops.iter().any(|hop| matches!(hop.params.queue, Queue::Fair(_)))
    }

    pub fn classes(&self) -> Classes {
        let path = &self.path;
        let rate = path.hops.iter().filter_map(|hop| hop.params.rate).min().unwrap_or_default().0 as f64;
        let rtt = path.delay.as_secs_f64() * 2.0;
        let queue = match path.hops[0].params.queue {
            Queue::Packets(n) | Queue::Fair(Fair { packets: n, .. }) => n,
            _ => 0,
        };
        let of = |value: f64, bounds: &[(f64, &'static str)]| {
            bounds.iter().find(|bound| value < bound.0).map_or("", |bound| bound.1)
        };
        let top = f64::INFINITY;
        [
            ("traffic", self.traffic),
            ("rate", of(rate, &[(1e6, "<1M"), (1e7, "1-10M"), (1e8, "10-100M"), (top, "100M-1G")])),
            ("load", of(self.load, &[(1e-9, "none or TCP"), (0.3, "<0.3"), (0.6, "0.3-0.6"), (top, "0.6-0.9")])),
            ("RTT", of(rtt, &[(0.01, "1-10 ms"), (0.1, "10-100 ms"), (top, "100-600 ms")])),
            ("queue", of(f64::from(queue), &[(30.0, "8-30"), (200.0, "30-200"), (top, "200-1000")])),
            ("loss", of(self.loss, &[(1e-9, "none"), (0.01, "<1 %"), (top, "1-5 %")])),
            ("batching", if path.receiver.gather == Nanos::ZERO { "none" } else { "50-250 us" }),
            ("host", if path.stalls.0 == 0.0 { "calm" } else { "stalls" }),
            ("bottlenecks", if path.hops.len() == 1 { "one" } else { "two" }),
        ]
    }
}

fn tcp(s: &mut Stream, transfers: Option<(f64, Nanos)>) -> Tcp {
    Tcp { rtt: Nanos::from_secs_f64(log(s, 0.005, 0.2)), transfers }
}
