//! Every rule, broken once: the refusal names the line, the key, the value and what is allowed.

use crate::common::{SMALL, after, instead, refusal};
use pathcast_base::{Exit, Fault};
use pathcast_scenario::{Place, Scenario, ScenarioError};

/// The text, then the line, the key, a part of the value and a part of the whole message.
fn check(text: &str, line: usize, key: &str, value: &str, message: &str) {
    let refusal = refusal(text, &[]);
    let shown = refusal.to_string();
    assert_eq!(refusal.place, Place::Line(line), "{shown}\n{text}");
    assert_eq!(refusal.key, key, "{shown}\n{text}");
    assert!(refusal.value.as_deref().unwrap_or_default().contains(value), "{shown}: no {value}\n{text}");
    assert!(shown.contains(message), "{shown}: no {message}\n{text}");
    assert!(shown.starts_with(&format!("line {line}: ")), "{shown}");
    assert!(refusal.allowed.is_some() || shown.contains("write it as") || shown.contains("missing"), "{shown}");
    assert!(ScenarioError::Refused(Box::new(refusal)).hint().is_some());
}

#[test]
fn the_base_is_good() {
    crate::common::good(SMALL);
}

#[test]
fn unknown_keys_list_the_allowed_ones() {
    check(&after("end", "sed = 3"), 2, "sed", "3", "allowed: name, seed, end, link");
    check(&after("rate", "dealy = \"1ms\""), 7, "link.wire.dealy", "1ms", "allowed: name, a, b, rate, delay");
    check(&after("links", "link = \"wire\""), 10, "path.path1.link", "wire", "allowed: name, links, ip");
    check(&after("paths", "subflow = 2"), 13, "flow.bulk.subflow", "2", "allowed: name, paths, subflows");
    check(&after("paths", "[tcp]\npresets = 1"), 14, "tcp.presets", "1", "allowed: preset, initial_window");
    check(&after("paths", "[[tarffic]]"), 13, "tarffic", "", "unknown key");
    check(
        &instead("rate", "rate = { up = \"1Mbit\", ab = \"1Mbit\" }"),
        6,
        "link.wire.rate.up",
        "1Mbit",
        "allowed: ab, ba",
    );
    let hint = |text: &str| refusal(text, &[]).hint.unwrap_or_default();
    assert_eq!(hint(&after("rate", "dealy = \"1ms\"")), "did you mean `delay`?");
    assert_eq!(hint(&after("end", "sed = 3")), "did you mean `seed`?");
    assert_eq!(hint(&after("end", "zzzzzz = 3")), "");
}

#[test]
fn missing_things() {
    check("", 1, "link", "", "there is no [[link]]");
    check("[[link]]\nname = \"x\"\na = \"client\"\nb = \"server\"\n", 1, "path", "", "there is no [[path]]");
    check(&instead("name", ""), 2, "link.1", "", "the key `name` is missing");
    check(&instead("b =", ""), 2, "link.wire", "", "the key `b` is missing");
    check(&instead("links", ""), 7, "path.path1", "", "the key `links` is missing");
    check(&after("paths", "[[change]]\nlink = \"wire\""), 13, "change.1", "", "the key `at` is missing");
    check(
        &after("paths", "[[traffic]]\nlink = \"wire\""),
        13,
        "traffic.1",
        "",
        "constant, poisson, pareto-onoff, tcp, web",
    );
    check(&instead("end", ""), 10, "flow.bulk", "", "never ends");
}

#[test]
fn wrong_types() {
    check(&instead("rate", "rate = 5"), 6, "link.wire.rate", "5", "allowed: a rate such as");
    check(&instead("rate", "rate = \"5Mb\""), 6, "link.wire.rate", "5Mb", "the unit is unknown");
    check(&instead("rate", "rate = { ab = 5 }"), 6, "link.wire.rate.ab", "5", "a rate such as");
    check(&after("rate", "delay = \"-1ms\""), 7, "link.wire.delay", "-1ms", "it is negative");
    check(&after("rate", "loss = \"0.1\""), 7, "link.wire.loss", "0.1", "allowed: a number");
    check(&after("rate", "queue = \"50\""), 7, "link.wire.queue", "50", "\"50 packets\", \"150KB\", { kind");
    check(&after("rate", "queue = 50"), 7, "link.wire.queue", "50", "\"50 packets\"");
    check(
        &after("rate", "queue = { min = 1 }"),
        7,
        "link.wire.queue",
        "",
        "the key `kind` is missing; allowed: red, fair, codel, fq_codel, pie",
    );
    check(
        &after("rate", "queue = { kind = \"cake\" }"),
        7,
        "link.wire.queue.kind",
        "cake",
        "allowed: red, fair, codel, fq_codel, pie",
    );
    check(
        &after("rate", "queue = { kind = \"red\", min = 1, max = 2 }"),
        7,
        "link.wire.queue",
        "",
        "`limit` is missing",
    );
    check(&after("rate", "queue = { kind = \"fair\" }"), 7, "link.wire.queue", "", "`packets` is missing");
    let limit = "queue = { kind = \"fair\", limit = 5 }";
    check(&after("rate", limit), 7, "link.wire.queue.limit", "5", "allowed: packets, quantum");
    check(&instead("links", "links = \"wire\""), 9, "path.path1.links", "wire", "allowed: a list");
    check(&instead("links", "links = [1]"), 9, "path.path1.links.1", "1", "a text in double quotes");
    check(&after("end", "seed = -1"), 2, "seed", "-1", "a whole number, 0 or more");
    check(&after("end", "seed = 99999999999999999999"), 2, "seed", "99999999999999999999", "a whole number");
    check(&after("end", "seed = 2026-01-01"), 2, "seed", "2026-01-01", "a whole number");
    check(&after("paths", "[tcp]\nsack = 1"), 14, "tcp.sack", "1", "true or false");
    check(&after("paths", "[tcp]\npreset = \"bsd\""), 14, "tcp.preset", "bsd", "allowed: linux, ns3, ns2, rfc");
    check(&after("paths", "[tcp]\nrecovery = \"rack\""), 14, "tcp.recovery", "rack", "allowed: prr, classic");
    check(&after("paths", "[tcp]\nscheduler = \"blest\""), 14, "tcp.scheduler", "blest", "minrtt, roundrobin, linux");
    check(&after("paths", "[tcp]\njoin = \"late\""), 14, "tcp.join", "late", "allowed: handshake, together");
    check(&after("paths", "[tcp]\nrack = 1"), 14, "tcp.rack", "1", "true or false");
    check(&after("paths", "[control.gsam]\nx = [1]"), 14, "control.gsam.x", "[1]", "");
    check("link = 5", 1, "link", "5", "a list");
}

#[test]
fn a_table_where_a_list_of_them_stands() {
    check(&SMALL.replacen("[[link]]", "[link]", 1), 2, "link", "", "a list of tables, each begins with [[link]]");
    let hint = |text: &str, sets: &[(&str, &str)]| refusal(text, sets).hint.unwrap_or_default();
    for section in ["path", "flow"] {
        let text = SMALL.replacen(&format!("[[{section}]]"), &format!("[{section}]"), 1);
        assert_eq!(hint(&text, &[]), format!("write [[{section}]] in place of [{section}]"));
    }
    let change = after("paths", "[change]\nat = \"1s\"\nlink = \"wire\"\nloss = 0.1");
    assert_eq!(hint(&change, &[("link.wire.delay", "1ms")]), "write [[change]] in place of [change]");
    // no key is left for a --set to find
    let link = SMALL.replacen("[[link]]", "[link]", 1);
    assert_eq!(hint(&link, &[("link.wire.delay", "1ms")]), "write [[link]] in place of [link]");
}

#[test]
fn values_out_of_range() {
    let link = |line: &str, key: &str, value: &str, message: &str| check(&after("rate", line), 7, key, value, message);
    check(&instead("rate", "rate = \"0bit\""), 6, "link.wire.rate", "0bit", "at least 1bit");
    check(&instead("rate", "rate = { ba = \"0bit\" }"), 6, "link.wire.rate.ba", "0bit", "at least 1bit");
    link("loss = 1.5", "link.wire.loss", "1.5", "allowed: 0 to 1");
    link("loss = -0.5", "link.wire.loss", "-0.5", "allowed: 0 to 1");
    link("loss = nan", "link.wire.loss", "NaN", "allowed: 0 to 1");
    link("delay = \"2h\"", "link.wire.delay", "2h", "at most 1h");
    link("jitter = { amplitude = \"2h\" }", "link.wire.jitter.amplitude", "2h", "at most 1h");
    link("jitter = { amplitude = \"1ms\", step = \"0s\" }", "link.wire.jitter.step", "0s", "at least 1ms");
    link("reorder = { share = 0, distance = \"1ms\" }", "link.wire.reorder.share", "0", "allowed: above 0, at most 1");
    link("reorder = { share = 0.1 }", "link.wire.reorder", "", "`distance` is missing");
    link("reorder = { share = 0.1, distance = \"11s\" }", "link.wire.reorder.distance", "11s", "above 0s, at most 10s");
    link("bucket = { rate = \"1Mbit\", burst = \"100B\" }", "link.wire.bucket.burst", "100B", "1500B");
    link("bucket = { ab = { rate = \"1Mbit\", burst = \"100B\" } }", "link.wire.bucket.ab.burst", "100B", "1500B");
    let bursts = |rest: &str| format!("loss = {{ kind = \"gilbert-elliott\", {rest} }}");
    link(&bursts("p = 0.1"), "link.wire.loss", "", "the key `r` is missing");
    link(&bursts("p = 0, r = 0.5"), "link.wire.loss.p", "0", "allowed: above 0, at most 1");
    link(&bursts("p = 0.1, r = 0.5, bad = 2"), "link.wire.loss.bad", "2", "allowed: 0 to 1");
    link(&bursts("p = 0.1, r = 0.5, q = 2"), "link.wire.loss.q", "2", "allowed: p, r, good, bad");
    link("loss = { kind = \"markov\" }", "link.wire.loss.kind", "markov", "allowed: gilbert-elliott");
    link("policer = { rate = \"1Mbit\", burst = \"1KB\" }", "link.wire.policer.burst", "1KB", "1500B and the overhead");
    link("policer = { rate = \"1Mbit\" }", "link.wire.policer", "", "`burst` is missing");
    link("aggregation = { every = \"1us\", bytes = \"9KB\" }", "link.wire.aggregation.every", "1us", "10us to 1s");
    link("aggregation = { every = \"4ms\", bytes = \"1KB\" }", "link.wire.aggregation.bytes", "1KB", "1500B");
    link("aggregation = { every = \"4ms\" }", "link.wire.aggregation", "", "`bytes` is missing");
    for (value, allowed) in [
        ("9223372036854775807B", "allowed: at most 3GB"),
        ("3000000001B", "allowed: at most 3GB"),
        ("4294967295 packets", "4294967295 packets is out of range; allowed: at most 2000000 packets"),
        ("2000001 packets", "allowed: at most 2000000 packets"),
    ] {
        link(&format!("queue = \"{value}\""), "link.wire.queue", value, allowed);
    }
    let queue = "queue = { kind = \"red\", min = 5, max = 15, limit = 4000000000 }";
    link(queue, "link.wire.queue.limit", "4000000000", "allowed: at most 2000000 packets");
    let queue = "queue = { kind = \"fair\", packets = 4000000000 }";
    link(queue, "link.wire.queue.packets", "4000000000", "allowed: at most 2000000 packets");
    link("queue = { kind = \"red\", min = 9, max = 2, limit = 50 }", "link.wire.queue.max", "2", "above min (9)");
    let queue = "queue = { kind = \"fair\", packets = 9, quantum = \"63B\" }";
    link(queue, "link.wire.queue.quantum", "63B", "63B is out of range; allowed: 64B to 65535B");
    let bucket = "bucket = { rate = \"1Mbit\", burst = \"10KB\" }\nqueue = { kind = \"fair\", packets = 9 }";
    link(bucket, "link.wire.bucket", "", "does not go together with the queue; allowed: none beside a fair queue");
    check(&instead("end", "end = \"0s\""), 1, "end", "0s", "above 0");
    check(&instead("end", "end = \"1001h\""), 1, "end", "1001h", "0s to 1000h");
    let flow =
        |line: &str, key: &str, value: &str, message: &str| check(&after("paths", line), 13, key, value, message);
    flow("subflows = 0", "flow.bulk.subflows", "0", "1 to 8");
    flow("subflows = 9", "flow.bulk.subflows", "9", "1 to 8");
    flow("subflows = -1", "flow.bulk.subflows", "-1", "allowed: a whole number, 1 to 8");
    flow("subflows = 4294967296", "flow.bulk.subflows", "4294967296", "allowed: a whole number, 1 to 8");
    flow("bytes = \"0B\"", "flow.bulk.bytes", "0B", "above 0");
    flow("stop = \"5s\"\nstart = \"5s\"", "flow.bulk.stop", "5s", "above 5s");
    flow("web = { shape = 1.0 }", "flow.bulk.web.shape", "1.0", "above 1");
    let tcp =
        |line: &str, key: &str, message: &str| check(&after("paths", &format!("[tcp]\n{line}")), 14, key, "", message);
    tcp("initial_window = 0", "tcp.initial_window", "1 to 1000");
    tcp("initial_window = -1", "tcp.initial_window", "a whole number, 1 to 1000");
    tcp("delayed_ack = -1", "tcp.delayed_ack", "a whole number, 1 to 2");
    tcp("abc_limit = 5000000000", "tcp.abc_limit", "a whole number, 1 to 65535");
    tcp("mss = \"10B\"", "tcp.mss", "64B to 65439B");
    tcp("delayed_ack = 3", "tcp.delayed_ack", "1 to 2");
    tcp("min_rto = \"0s\"", "tcp.min_rto", "at most 120s");
    tcp("abc_limit = 0", "tcp.abc_limit", "1 to 65535");
    tcp("abc_limit = 65536", "tcp.abc_limit", "1 to 65535");
    tcp("rack = true\nsack = false", "tcp.rack", "with SACK only; allowed: false, or sack = true");
    tcp("receive_buffer = \"0B\"", "tcp.receive_buffer", "1B to ");
    check(&after("paths", "[control.gsam]\nx = inf"), 14, "control.gsam.x", "inf", "finite");
}

#[test]
fn names() {
    check(&instead("name", "name = \"a b\""), 3, "link.a b.name", "a b", "letters, digits");
    check(&instead("name", "name = \"\""), 3, "link..name", "", "letters, digits");
    check(&after("paths", "control = \"no name\""), 13, "flow.bulk.control", "no name", "letters, digits");
    let double = |table: &str| format!("{SMALL}{table}");
    check(
        &double("[[link]]\nname = \"wire\"\na = \"client\"\nb = \"server\""),
        14,
        "link.wire.name",
        "wire",
        "already",
    );
    check(&double("[[path]]\nname = \"path1\"\nlinks = [\"wire\"]"), 14, "path.path1.name", "path1", "already");
    check(&double("[[flow]]\nname = \"bulk\"\npaths = [\"path1\"]"), 14, "flow.bulk.name", "bulk", "already");
    check(&instead("links", "links = [\"wier\"]"), 9, "path.path1.links.1", "wier", "allowed: wire");
    check(&instead("paths", "paths = [\"path2\"]"), 12, "flow.bulk.paths.1", "path2", "allowed: path1");
    check(&instead("paths", "paths = []"), 12, "flow.bulk.paths", "", "allowed: path1");
    check(&instead("paths", "paths = [\"path1\", \"path1\"]"), 12, "flow.bulk.paths.2", "path1", "every path once");
    assert_eq!(refusal(&instead("links", "links = [\"wier\"]"), &[]).hint.unwrap(), "did you mean `wire`?");
}

#[test]
fn topology() {
    let link = |name: &str, a: &str, b: &str| format!("[[link]]\nname = \"{name}\"\na = \"{a}\"\nb = \"{b}\"\n");
    let net = |links: &[(&str, &str, &str)], path: &str| {
        let links: String = links.iter().map(|(name, a, b)| link(name, a, b)).collect();
        format!("{links}[[path]]\nname = \"p\"\nlinks = [{path}]\n")
    };
    let line = [("1", "client", "r"), ("2", "server", "r")];
    crate::common::good(&net(&line, "\"1\", \"2\""));
    check(&net(&[("1", "client", "client")], ""), 4, "link.1.b", "client", "both ends");
    check(&net(&[("1", "cleint", "server")], ""), 1, "link.1", "", "no link ends at the node `client`");
    check(&net(&[("1", "client", "sever")], ""), 1, "link.1", "", "no link ends at the node `server`");
    check(
        &net(&[line[0], ("2", "q", "server")], "\"1\", \"2\""),
        7,
        "link.2.a",
        "q",
        "cannot be reached from `client`",
    );
    check(&net(&line, "\"2\", \"1\""), 11, "path.p.links.1", "2", "has come to `client`; allowed: 1");
    check(&net(&line, "\"1\""), 11, "path.p.links", "1", "ends at `r`");
    check(&net(&line, ""), 11, "path.p.links", "", "ends at `client`");
    check(&net(&line, "\"1\", \"1\""), 11, "path.p.links.2", "1", "in the path already");
    let ring = [line[0], line[1], ("3", "r", "q"), ("4", "q", "client")];
    check(&net(&ring, "\"1\", \"3\", \"4\", \"2\""), 19, "path.p.links.3", "4", "comes back to `client`: a cycle");
    check(&net(&line, "\"1\", \"2\", \"1\""), 11, "path.p.links.3", "1", "already");
    let beyond = [line[0], line[1], ("3", "server", "q")];
    check(&net(&beyond, "\"1\", \"2\", \"3\""), 15, "path.p.links.3", "3", "has reached `server`");
    let many: String = (2..=9).map(|i| format!("[[path]]\nname = \"path{i}\"\nlinks = [\"wire\"]\n")).collect();
    check(&format!("{SMALL}{many}"), 34, "path.path9", "", "1 to 8 paths");
}

#[test]
fn addresses() {
    let path =
        |keys: &str, key: &str, value: &str, message: &str| check(&after("links", keys), 10, key, value, message);
    path("ip = 5", "path.path1.ip", "5", "allowed: 4, 6");
    path("local = \"10.0.0\"", "path.path1.local", "10.0.0", "not an IP address");
    path("local = \"224.0.0.1\"", "path.path1.local", "224.0.0.1", "reached");
    path("local = \"fe80::1\"", "path.path1.local", "fe80::1", "reached");
    path("remote = \"path9\"", "path.path1.remote", "path9", "a path: path1");
    path("remote = \"path1\"", "path.path1.remote", "path1", "no server address of its own");
    path("remote = \"fd00::1\"\nlocal = \"10.0.0.1\"", "path.path1.remote", "fd00::1", "not an IPv4 address");
    path("local = \"10.0.0.1\"\nip = 6\nremote = \"10.0.0.2\"", "path.path1.local", "10.0.0.1", "not an IPv6 address");
    check(&after("links", "local = \"10.0.0.1\""), 7, "path.path1", "", "`remote` is missing");
    path("local = \"10.0.0.1\"\nremote = \"10.0.0.1\"", "path.path1.local", "10.0.0.1", "server address too");
    let second = |keys: &str| format!("{SMALL}[[path]]\nname = \"path2\"\nlinks = [\"wire\"]\n{keys}\n");
    check(&second("ip = 6\nremote = \"path1\""), 16, "path.path2.ip", "6", "is IPv4");
    let third = second("remote = \"path1\"") + "[[path]]\nname = \"path3\"\nlinks = [\"wire\"]\nremote = \"path2\"\n";
    check(&third, 20, "path.path3.remote", "path2", "or a path: path1");
    let given = after("links", "local = \"10.0.0.9\"\nremote = \"10.0.1.1\"")
        + "[[path]]\nname = \"path2\"\nlinks = [\"wire\"]\n";
    check(
        &(given.clone() + "local = \"10.0.0.7\"\nremote = \"path1\""),
        18,
        "path.path2.local",
        "10.0.0.7",
        "same subnet",
    );
    check(&given, 15, "path.path2", "", "do not mix");
    let repeated = |local: &str| {
        let keys = format!("local = \"{local}\"\nremote = \"10.0.0.6\"");
        after("links", &keys) + "subflows = 8\n"
    };
    crate::common::good(&repeated("10.0.0.240"));
    check(&repeated("10.0.0.250"), 10, "path.path1.local", "10.0.0.250", "7 free ones");
    check(&repeated("10.0.0.1"), 10, "path.path1.local", "10.0.0.1", "8 free client addresses");
}

#[test]
fn traffic() {
    let traffic = |keys: &str, line: usize, key: &str, value: &str, message: &str| {
        check(&format!("{SMALL}[[traffic]]\n{keys}\n"), line, &format!("traffic.{key}"), value, message);
    };
    let on = "link = \"wire\"\ndirection = \"ab\"\n";
    traffic("kind = \"cbr\"", 14, "1.kind", "cbr", "allowed: constant, poisson, pareto-onoff, tcp, web");
    traffic("kind = 3", 14, "1.kind", "3", "text in double quotes");
    traffic("kind = \"poisson\"\nlink = \"wire\"\nrate = \"1Mbit\"", 13, "1", "", "`direction` is missing");
    traffic("kind = \"poisson\"\nlink = \"wire\"\ndirection = \"up\"", 16, "1.direction", "up", "allowed: ab, ba");
    traffic("kind = \"poisson\"\nclients = 3", 15, "1.clients", "3", "allowed: name, link, direction, rate, packet");
    traffic(
        "kind = \"web\"\npath = \"path1\"\nrate = \"1Mbit\"",
        16,
        "1.rate",
        "1Mbit",
        "allowed: name, path, to, clients",
    );
    traffic(&format!("kind = \"constant\"\nrate = \"0bit\"\n{on}"), 15, "1.rate", "0bit", "1bit to");
    traffic(
        &format!("kind = \"constant\"\nrate = \"1Mbit\"\npacket = \"0B\"\n{on}"),
        16,
        "1.packet",
        "0B",
        "1B to 65535B",
    );
    let bursts = |keys: &str| format!("kind = \"pareto-onoff\"\nrate = \"1Mbit\"\n{keys}\n{on}");
    traffic(&bursts("peak = \"1Mbit\"\non = \"1s\""), 16, "1.peak", "1Mbit", "above the mean rate");
    traffic(&bursts("shape = 1\npeak = \"2Mbit\"\non = \"1s\""), 16, "1.shape", "1", "at least 1.01");
    traffic(&bursts("on = \"0s\"\npeak = \"2Mbit\""), 16, "1.on", "0s", "at least");
    traffic(
        "kind = \"poisson\"\nlink = \"x\"\ndirection = \"ab\"\nrate = \"1Mbit\"",
        15,
        "1.link",
        "x",
        "allowed: wire",
    );
    traffic("kind = \"tcp\"\npath = \"x\"", 15, "1.path", "x", "allowed: path1");
    traffic("kind = \"tcp\"\npath = \"path1\"\nflows = 0", 16, "1.flows", "0", "1 to 10000");
    traffic("kind = \"tcp\"\npath = \"path1\"\nto = \"r1\"", 16, "1.to", "r1", "allowed: client, server");
    traffic("kind = \"tcp\"\npath = \"path1\"\nstart = \"3s\"\nstop = \"2s\"", 17, "1.stop", "2s", "above 3s");
    traffic("kind = \"web\"\npath = \"path1\"\npage = \"0B\"", 16, "1.page", "0B", "above 0");
    traffic("kind = \"web\"\npath = \"path1\"\nshape = 1.0", 16, "1.shape", "1.0", "above 1");
    let twice = "kind = \"tcp\"\npath = \"path1\"\nname = \"traffic2\"\n[[traffic]]\nkind = \"tcp\"\npath = \"path1\"";
    traffic(twice, 17, "2.name", "", "already");
}

#[test]
fn flows() {
    check(&after("paths", "bytes = \"1MB\"\nstop = \"2s\""), 14, "flow.bulk.stop", "2s", "does not go together");
    check(&after("paths", "bytes = \"1MB\"\nweb = {}"), 14, "flow.bulk.web", "", "does not go together");
}

#[test]
fn changes() {
    let change = |keys: &str, line: usize, key: &str, value: &str, message: &str| {
        let text = format!("{SMALL}[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n[[change]]\nat = \"1s\"\n{keys}\n");
        check(&text, line, &format!("change.1{key}"), value, message);
    };
    change("", 16, "", "", "`link` or `traffic`");
    change("link = \"wire\"", 16, "", "", "no new value");
    change("link = \"wire\"\ndirection = \"ab\"", 16, "", "", "no new value");
    change("link = \"x\"", 18, ".link", "x", "allowed: wire");
    change("traffic = \"x\"", 18, ".traffic", "x", "allowed: traffic1");
    change("traffic = \"traffic1\"", 18, ".traffic", "traffic1", "constant, poisson, pareto-onoff");
    change("link = \"wire\"\ntraffic = \"traffic1\"", 19, ".traffic", "traffic1", "one of them");
    change("link = \"wire\"\npeak = \"1Mbit\"", 19, ".peak", "1Mbit", "allowed: rate, delay, queue");
    change("link = \"wire\"\nrate = \"0bit\"", 19, ".rate", "0bit", "at least 1bit");
    change("link = \"wire\"\nloss = { ba = 2 }", 19, ".loss.ba", "2", "0 to 1");
    change("link = \"wire\"\nchunk = \"1ms\"", 19, ".chunk", "1ms", "unknown key");
    change("link = \"wire\"\nloss = { ba = 1 }\ndirection = \"ab\"", 19, ".loss", "", "no `direction`");
    let fair = "{ kind = \"fair\", packets = 9 }";
    change(
        &format!("link = \"wire\"\nqueue = {fair}"),
        19,
        ".queue",
        "",
        "becomes one of another kind; allowed: packets, bytes",
    );
    change(&format!("link = \"wire\"\nqueue = {{ ba = {fair} }}"), 19, ".queue.ba", "", "becomes one of another kind");
    let fixed = |keys: &str, key: &str, value: &str, message: &str| {
        let text =
            after("rate", &format!("queue = {fair}")) + &format!("[[change]]\nat = \"1s\"\nlink = \"wire\"\n{keys}\n");
        check(&text, 17, &format!("change.1{key}"), value, message);
    };
    fixed(
        "queue = \"9 packets\"",
        ".queue",
        "9 packets",
        "no queue becomes one of another kind; allowed: a queue of kind fair",
    );
    fixed("bucket = { rate = \"1Mbit\", burst = \"9KB\" }", ".bucket", "", "none beside a fair queue");
    let poisson = |keys: &str, line: usize, key: &str, value: &str, message: &str| {
        let source = "kind = \"poisson\"\nlink = \"wire\"\ndirection = \"ab\"\nrate = \"1Mbit\"";
        let text = format!("{SMALL}[[traffic]]\n{source}\n[[change]]\nat = \"1s\"\ntraffic = \"traffic1\"\n{keys}\n");
        check(&text, line, &format!("change.1{key}"), value, message);
    };
    poisson("rate = \"0bit\"", 21, ".rate", "0bit", "1bit to");
    poisson("rate = { ab = \"1Mbit\" }", 21, ".rate", "", "one direction");
    poisson("rate = \"1Mbit\"\ndirection = \"ab\"", 22, ".direction", "ab", "keeps its direction");
    poisson("peak = \"1Mbit\"", 21, ".peak", "1Mbit", "allowed: rate, packet");
    poisson("delay = \"1ms\"", 21, ".delay", "1ms", "allowed: rate, packet");
}

#[test]
fn what_is_not_toml_has_a_line_and_a_column() {
    for (text, at) in
        [("end = 10s", (1, 7)), ("a = 1\nb = \"x", (2, 7)), ("\n[[link]\n", (2, 8)), ("x = 1\nx = 2", (2, 1))]
    {
        match Scenario::parse(text, &[]) {
            Err(ScenarioError::Syntax { line, column, .. }) => assert_eq!((line, column), at, "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let error = Scenario::parse("[", &[]).unwrap_err();
    assert!(error.to_string().starts_with("line 1, column "), "{error}");
    assert_eq!((error.code(), error.exit(), error.line()), ("scenario", Exit::Usage, Some(1)));
}

#[test]
fn what_cannot_be_read() {
    let error = Scenario::load("/no/such/file.toml", &[]).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the scenario /no/such/file.toml: "), "{error}");
    assert_eq!((error.code(), error.exit(), error.line()), ("scenario", Exit::Usage, None));
    assert!(error.hint().is_some());
    assert!(matches!(Scenario::load(env!("CARGO_MANIFEST_DIR"), &[]), Err(ScenarioError::Unreadable { .. })));
    let error = Scenario::load(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &[]).unwrap_err();
    assert!(error.to_string().contains("Cargo.toml, line "), "{error}");
}
