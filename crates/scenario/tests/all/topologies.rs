//! The shipped topologies load, are what they say, and survive the way through JSON.

use std::path::PathBuf;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::Queue;
use pathcast_scenario::{Scenario, Workload, addresses};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "python", "pathcast", "topologies"].iter().collect()
}

fn load(name: &str) -> Scenario {
    Scenario::load(folder().join(name), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Base round-trip times, in ms.
fn round_trips(s: &Scenario) -> Vec<u64> {
    let delay = |path: &pathcast_scenario::Path| -> u64 {
        path.hops.iter().map(|hop| (s.links[hop.link].ab.delay + s.links[hop.link].ba.delay).0).sum()
    };
    s.paths.iter().map(|path| delay(path) / 1_000_000).collect()
}

#[test]
fn shared_bottleneck() {
    let s = load("shared-bottleneck.toml");
    assert_eq!(round_trips(&s), [150]);
    let bottleneck = &s.links[s.link("bottleneck").unwrap()];
    assert_eq!((bottleneck.ab.rate, &bottleneck.ab.queue), (Some(Rate(5_000_000)), &Queue::Packets(50)));
    assert_eq!(bottleneck.ab.delay, Nanos::millis(73));
    assert!(s.traffic.is_empty());
    assert_eq!(s.flows[s.flow("bulk").unwrap()].workload, Workload::Bytes(Bytes(750_000)));
}

#[test]
fn two_path() {
    let s = load("two-path.toml");
    assert_eq!(round_trips(&s), [50, 100]);
    assert!(s.links.iter().all(|link| link.ab.rate == Some(Rate(100_000_000))));
    assert_ne!(s.paths[0].hops, s.paths[1].hops);
    assert_ne!(addresses(&s, 0)[0].remote, addresses(&s, 0)[1].remote);
}

#[test]
fn three_path() {
    let s = load("three-path.toml");
    assert_eq!(round_trips(&s), [30, 70, 160]);
    assert_eq!(s.paths[0].hops.last(), s.paths[1].hops.last());
}

#[test]
fn two_wan() {
    let s = load("two-wan.toml");
    assert_eq!(round_trips(&s), [30, 40]);
    let found = addresses(&s, 0);
    assert_eq!(found[0].remote, found[1].remote);
    assert_ne!(found[0].local, found[1].local);
    assert!(s.links[0].ab.rate < s.links[0].ba.rate);
}

#[test]
fn two_gigabit() {
    let s = load("two-gigabit.toml");
    assert_eq!(round_trips(&s), [148, 148]);
    for link in s.links.iter().flat_map(|link| [&link.ab, &link.ba]) {
        assert_eq!((link.rate, &link.queue), (Some(Rate(1_000_000_000)), &Queue::Packets(2000)));
        assert_eq!(link.jitter.as_ref().unwrap().amplitude, Nanos::millis(2));
    }
    assert_ne!(s.paths[0].hops, s.paths[1].hops);
}

#[test]
fn all_of_them_read_back_from_json() {
    let mut seen = 0;
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let s = Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(s.name, path.file_stem().unwrap().to_str().unwrap());
        let json = s.to_json();
        assert!(json.starts_with("{\"schema\":\"pathcast.scenario/1\",\"name\""), "{json}");
        assert_eq!(Scenario::from_json(&json).unwrap(), s);
        seen += 1;
    }
    assert!(seen >= 16);
}

#[test]
fn a_pair_has_the_lines_that_are_shipped_singly() {
    for (pair, lines) in [("office", ["dsl", "cable"]), ("van", ["starlink", "5g"]), ("village", ["starlink", "dsl"])] {
        let pair = load(&format!("{pair}.toml"));
        for (path, name) in pair.paths.iter().zip(lines) {
            let single = load(&format!("{name}.toml"));
            assert_eq!(pair.links[path.hops[0].link], single.links[0]);
            assert_eq!(single.links[0].name, name);
        }
        let found = addresses(&pair, 0);
        assert_eq!(found[0].remote, found[1].remote);
    }
}

/// Of the rates of `scripts/rates.py`.
#[test]
fn the_radio_lines_have_the_medians_that_they_name() {
    for (name, down, up, step) in [("starlink", 178e6, 17e6, 15), ("5g", 100e6, 50e6, 1), ("lte", 9.6e6, 4.9e6, 1)] {
        let link = load(&format!("{name}.toml")).links.swap_remove(0);
        for (params, median) in [(link.ab, up), (link.ba, down)] {
            let trace = params.trace.unwrap();
            let text = std::fs::read_to_string(&trace.file).unwrap();
            let rows: Vec<(f64, f64)> = text
                .lines()
                .skip(1)
                .map(|line| line.split_once(',').unwrap())
                .map(|(at, rate)| (at.parse().unwrap(), rate.parse().unwrap()))
                .collect();
            assert!(rows.windows(2).all(|two| two[1].0 - two[0].0 == f64::from(step)));
            let mut rates: Vec<f64> = rows.iter().map(|row| row.1 * 1e6).collect();
            rates.sort_by(f64::total_cmp);
            let found = (rates[rates.len() / 2 - 1] + rates[rates.len() / 2]) / 2.0;
            assert!((found / median - 1.0).abs() < 0.01, "{name}: {found} of {median}");
        }
    }
}
