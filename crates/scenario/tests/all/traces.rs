//! Rates from a file: found beside the scenario, recorded by its digest, and refused by line.

use std::fs;
use std::path::PathBuf;

use crate::common::instead;
use pathcast_base::{Nanos, Rate};
use pathcast_link::Format;
use pathcast_scenario::{Amendment, Changed, Scenario, ScenarioError, Template};

/// A directory of its own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pathcast-traces-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn load(&self, rate: &str) -> Result<Scenario, ScenarioError> {
        let file = self.0.join("net.toml");
        fs::write(&file, instead("rate", &format!("rate = {rate}"))).unwrap();
        Scenario::load(file, &[])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_trace_lies_beside_the_scenario_and_is_known_by_its_digest() {
    let folder = Folder::new("beside");
    folder.write("down.csv", "s,mbps\n0,5\n1,20\n");
    folder.write("up", "0\n5\n10\n");
    let rate = "{ ab = { trace = \"up\", offset = \"3ms\" }, ba = { trace = \"down.csv\", scale = 0.5 } }";
    let scenario = folder.load(rate).unwrap();
    let (ab, ba) = (scenario.links[0].ab.trace.clone().unwrap(), scenario.links[0].ba.trace.clone().unwrap());
    assert_eq!((ab.format, ab.offset, ab.scale), (Format::Mahimahi, Nanos::millis(3), 1.0));
    assert_eq!((ba.format, ba.scale, ba.mean()), (Format::Csv, 0.5, 6.25e6));
    assert_eq!(ab.sha256, "94c9f5065eb63bb7b75b2a2d9867f1c6cb573c2ff8f068901df9607000b7e52c"); // of sha256sum
    assert_eq!(scenario.links[0].ab.rate, None);
    assert_eq!(scenario.links[0].ab.mean_rate(), Some(Rate(3_600_000)));
    // back from JSON, whose digest must hold
    let json = scenario.to_json();
    assert!(json.contains(&ab.sha256) && json.len() < 4000, "{json}");
    assert_eq!(Scenario::from_json(&json).unwrap(), scenario);
    folder.write("up", "0\n5\n11\n");
    assert!(Scenario::from_json(&json).unwrap_err().to_string().contains("no longer the file of the digest"));
}

#[test]
fn changes_sets_and_amendments_take_traces() {
    let folder = Folder::new("change");
    folder.write("t", "1\n");
    let text =
        format!("{}[[change]]\nat = \"1s\"\nlink = \"wire\"\nrate = {{ trace = \"t\" }}\n", crate::common::SMALL);
    let base = Some(folder.0.as_path());
    let scenario = Scenario::parse_in(&text, &[], base).unwrap();
    let Changed::Link { params, .. } = &scenario.changes[0].what else { panic!("a link changes") };
    assert_eq!((params.rate, params.trace.as_ref().unwrap().mean()), (None, 12e6));
    let template = Template::parse_in(&text, base).unwrap();
    let to = |value: &str| Amendment::read(&template, &[], "wire", None, &[("rate".into(), value.into())]);
    let amended = to("{ trace = \"t\", scale = 2 }").unwrap().over(&scenario.links[0]).unwrap();
    assert_eq!((amended[0].1.rate, amended[0].1.mean_rate()), (None, Some(Rate(24_000_000))));
    let mut traced = scenario.links[0].clone();
    traced.ab = amended[0].1.clone();
    let back = to("1Mbit").unwrap().over(&traced).unwrap();
    assert_eq!((back[0].1.rate, back[0].1.trace.is_none()), (Some(Rate(1_000_000)), true));
    let traffic = text.replace(
        "[[change]]",
        "[[traffic]]\nkind = \"poisson\"\nlink = \"wire\"\ndirection = \"ab\"\nrate = \"1Mbit\"\n[[change]]",
    );
    let traffic = traffic.replace("link = \"wire\"\nrate = { trace", "traffic = \"traffic1\"\nrate = { trace");
    assert!(Scenario::parse_in(&traffic, &[], base).unwrap_err().to_string().contains("only a link follows a trace"));
}

#[test]
fn an_amendment_reads_the_trace_that_it_names_and_no_other() {
    let folder = Folder::new("amend");
    folder.write("t", "1\n");
    folder.write("u", "1\n");
    let text = instead("rate", "rate = { ab = { trace = \"t\" }, ba = { trace = \"u\" } }");
    let template = Template::parse_in(&text, Some(&folder.0)).unwrap();
    let to = |key: &str, value: &str| Amendment::read(&template, &[], "wire", None, &[(key.into(), value.into())]);
    let mean = |amendment: Amendment| amendment.wanted().links[0].ab.trace.as_ref().map(|trace| trace.mean());
    to("delay", "1ms").unwrap();
    folder.write("t", "1\n1\n");
    fs::remove_file(folder.0.join("u")).unwrap();
    assert_eq!(mean(to("delay", "2ms").unwrap()), Some(12e6), "as it was");
    assert!(to("rate", "{ trace = \"u\" }").unwrap_err().to_string().contains("No such file"));
    assert_eq!(mean(to("delay", "2ms").unwrap()), Some(12e6), "a refusal changes nothing");
    assert_eq!(mean(to("rate", "{ ab = { trace = \"t\" } }").unwrap()), Some(24e6), "as it is");
}

#[test]
fn bad_files_are_refused_with_the_key_the_line_and_what_is_allowed() {
    let folder = Folder::new("bad");
    folder.write("empty", "");
    folder.write("down", "1\n7\n3\n");
    folder.write("zero.csv", "0,0bit\n1,0bit\n");
    folder.write("binary", [0u8, 159, 146, 150, 0, 1, 2]);
    folder.write("good", "1\n");
    // as large as it says, but nothing of it is on the disk
    fs::File::create(folder.0.join("huge")).unwrap().set_len(10_000_000_000).unwrap();
    fs::create_dir(folder.0.join("folder")).unwrap();
    for (rate, key, says) in [
        ("{ trace = \"none\" }", "rate.trace", "No such file"),
        ("{ trace = \"folder\" }", "rate.trace", "it is no regular file"),
        ("{ trace = \"/dev/zero\" }", "rate.trace", "it is no regular file"),
        ("{ trace = \"empty\" }", "rate.trace", "empty, line 1: the file is empty"),
        ("{ trace = \"down\" }", "rate.trace", "down, line 3: `3` comes after 7"),
        ("{ ab = { trace = \"zero.csv\" } }", "rate.ab.trace", "zero.csv, line 2: all rates are zero"),
        ("{ trace = \"binary\" }", "rate.trace", "binary, line 1: `\\0"),
        ("{ trace = \"huge\" }", "rate.trace", "huge has 10000000000 bytes; allowed: a file of at most 32 MiB"),
        ("{ trace = \"good\", scale = 0 }", "rate.scale", "allowed: 0.01 to 100"),
        ("{ ba = { trace = \"good\", scale = nan } }", "rate.ba.scale", "allowed: 0.01 to 100"),
        ("{ trace = \"good\", offset = \"2000h\" }", "rate.offset", "0s to 1000h"),
        ("{ trace = \"good\", format = \"pcap\" }", "rate.format", "allowed: mahimahi, csv"),
        ("{ trace = \"good\", loop = 1 }", "rate.loop", "allowed: trace, offset, scale, format"),
        ("{ offset = \"1s\" }", "rate", "the key `trace` is missing"),
    ] {
        let error = folder.load(rate).unwrap_err();
        let ScenarioError::Refused(refusal) = &error else { panic!("{error}") };
        assert_eq!(refusal.key, format!("link.wire.{key}"), "{error}");
        assert!(error.to_string().contains(says), "{error} does not say {says}");
        assert_eq!(error.line(), Some(6), "{error}");
    }
    let error = folder.load("{ trace = \"good\" }\nbucket = { rate = \"1Mbit\", burst = \"15KB\" }").unwrap_err();
    let ScenarioError::Refused(refusal) = &error else { panic!("{error}") };
    assert_eq!(refusal.key, "link.wire.bucket");
    assert!(error.to_string().contains("none beside a trace"), "{error}");
}
