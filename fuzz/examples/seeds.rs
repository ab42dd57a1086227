//! Writes the inputs that every target begins with into the directory that is named: scripts that get far, good packets,
//! the topologies. `scripts/fuzz` does it before it runs.

use std::path::Path;
use std::{env, fs};

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::Budget;
use pathcast_measure::forge::{self, Forge};
use pathcast_session::{Key, forge as session};
use pathcast_measure::stamp::{ErrorEstimate, Mode, StampKey, TestPacket};

/// Times as [`pathcast_fuzz::script::Script::time`] reads them: about 4 µs, 1 ms, 33 ms, 1 s, 4 s.
const US: u8 = 40;
const MS: u8 = 72;
const FEW: u8 = 92;
const SECOND: u8 = 112;

fn put(root: &Path, target: &str, name: &str, bytes: &[u8]) {
    let directory = root.join(target);
    fs::create_dir_all(&directory).expect("a directory for the seeds");
    fs::write(directory.join(name), bytes).expect("a seed");
}

/// A session, a direction to the client, and its trains reported.
fn far_end(method: u8, op: u8, client: u8) -> Vec<u8> {
    let which = client << 6;
    let mut script = Vec::new();
    // the operation is the byte modulo 14, which the client's number changes
    let op_of =
        |want: u8| (0..32).map(|low| which | low).find(|byte| byte % 14 == want).expect("within 32 there are all");
    script.extend([op_of(1), 0, 2]);
    script.extend(2_000_000u32.to_be_bytes());
    script.push(124);
    script.extend([op_of(12), method, 0, 1]);
    script.extend(300_000u32.to_be_bytes());
    script.extend([SECOND, FEW]);
    for _ in 0..20 {
        script.extend([op_of(7), 200, op_of(9), FEW, 3, 10, op, 12, 1, op_of(6), US]);
    }
    script.extend([op_of(13), 1, op_of(4), 1, 0, 77, op_of(5), 2, op_of(6), SECOND]);
    script
}

/// A train of the client, asked for, and some that never ends.
fn far_sink() -> Vec<u8> {
    let mut script = vec![1, 0, 1];
    script.extend(2_000_000u32.to_be_bytes());
    script.push(124);
    for index in 0..4 {
        script.extend([3, 0, 1, 0, index, 4, 10, 20, 6, MS]);
    }
    script.extend([3, 0, 1, 9, 0, 200, 10, 20, 2, 16, 0, 1, 0, 4, 0, 0, 0, 9, 6, SECOND]);
    script.extend([2, 15, 0, 1, 0, 4, 0, 0, 0, 9, 6, FEW, 2, 19, 0, 0, 0, 0]);
    script
}

/// A measurement that is answered as it should be.
fn client(how: u8, arrives: u8) -> Vec<u8> {
    let mut script = vec![how, 1, 7, 6, US, 1, 1, 6, US];
    for _ in 0..12 {
        script.extend([7, 30, 1, MS, 1, 6, FEW - 4]);
    }
    for _ in 0..20 {
        script.extend([7, 200, 9, FEW, 3, 10, arrives, 12, 1, 6, US, 1, MS, 1]);
    }
    script.extend([25]);
    script.extend([5e6f64, 4e6, 6e6].map(f64::to_be_bytes).concat());
    script.push(9);
    script.extend([100_000_000_000u64, 10_000_000].map(u64::to_be_bytes).concat());
    script.push(1);
    script.extend([5, 1, 0, 0, 2, 0, 6, SECOND, 11, 0, 0, 9]);
    script
}

/// A look that is answered, with what a middlebox does.
fn echoes(how: u8) -> Vec<u8> {
    let mut script = vec![1, 5, 220, 5, 220, 0, 4, US, 0, 1, 4, US];
    for _ in 0..40 {
        script.extend([0, 9, 0, how, 0, how, 0, how, 4, FEW]);
    }
    script
}

fn main() {
    let root = env::args().nth(1).expect("seeds DIRECTORY");
    let root = Path::new(&root);
    let key = Key::new("one", vec![1; 32]).expect("a good key");
    let total = Budget { bytes: Bytes(300_000), time: Nanos::secs(2) };

    let hello = Forge::hello(&key, [5; 32], 0);
    let (forge, cookie) = Forge::cookie(&key, &hello, [3; 32]).expect("our own Hello");
    let (_, open) = Forge::open(&key, [5; 32], &cookie, 2, total).expect("our own Cookie");
    let [begin, opened, queued] = forge::bodies_of(0, total, 7, Nanos::millis(50), 1_000_000_000);
    let arrivals: Vec<_> = (0..9).map(|i| (i % 4 != 3).then_some((Nanos::millis(50 + i), i as u32 % 2, 2))).collect();
    let report = forge::reports(3, &arrivals).remove(0);
    let outcome = forge::outcome([5e6, 4e6, 6e6], 300_000, &[(1_000_000, 30_000), (2_000_000, -4)]);
    let stamp = forge::stamp(5, Nanos::millis(7), Nanos::millis(8));
    let bodies =
        [(3, opened), (4, queued), (12, stamp), (13, begin), (15, report), (16, vec![0, 0, 0, 3]), (17, outcome)];
    put(root, "datagram", "hello", &hello);
    put(root, "datagram", "cookie", &cookie);
    put(root, "datagram", "open", &open);
    put(root, "datagram", "probe", &forge.probe(true, 1, 2, (3, 4, 9), 500));
    for (kind, body) in &bodies {
        put(root, "datagram", &format!("body{kind}"), body);
        put(root, "datagram", &format!("kind{kind}"), &forge.say(false, *kind, 0, 1, 9, body));
    }

    for method in 0..5 {
        put(root, "far_end", &format!("source{method}"), &far_end(method, 9, method % 3));
        put(root, "client", &format!("out{method}"), &client(9 * method, 9));
        put(root, "client", &format!("both{method}"), &client(9 * method + 5, 200));
    }
    let echoed = forge::echoed(5, 1400, 184, Nanos::millis(7), Nanos::millis(8));
    put(root, "datagram", "body22", &echoed);
    put(root, "datagram", "kind21", &forge.say(true, 21, 0, 0, 9, &forge::echo(5, 1500, 2)));
    put(root, "datagram", "kind22", &forge.say(false, 22, 0, 0, 9, &echoed));
    for (name, how) in [("clean", 0), ("hole", 129), ("marks", 2)] {
        put(root, "echoes", name, &echoes(how));
    }
    put(root, "far_end", "sink", &far_sink());
    put(root, "client", "in", &client(1, 9));
    put(root, "client", "at_once", &client(45 + 8, 30));

    let packet = TestPacket { sequence: 2, timestamp: 77, error: ErrorEstimate::from_bits(1), ssid: 4 };
    for (name, first, mode) in [("open", 0, Mode::Open), ("signed", 1, Mode::Authenticated(StampKey::new(b"key")))] {
        let mut bytes = [&[first][..], &packet.write(&mode)].concat();
        bytes.extend([0x80, 1, 0, 4, 0, 0, 0, 0, 0x80, 7, 0, 9]);
        put(root, "stamp", name, &bytes);
        let sender: Vec<u8> = [[0, 2, 0], [4, 104, 0]].concat().repeat(6);
        put(root, "stamp", &format!("{name}-sender"), &[&[first | 4], &sender[..]].concat());
    }

    let keys = session::keys(&key, &[100; 32], &[0; 32]);
    let frames = [session::hello(&key, [100; 32], None), session::say(&keys, 1, 5, &1u64.to_be_bytes())].concat();
    put(root, "session", "frames", &[&[0], &frames[..]].concat());
    let far = [1, 0, 11, 27, 9, 9, 4, 22, 0, 1, 100, 0, 5, 100, 17, 1, 6, 100, 16, 10, 7];
    put(root, "session", "far-end", &far);
    put(root, "session", "transfer", &[&[1, 0, 0, 2, 22, 0, 1, 9, 0, 23, 9, 8, 1, 6, 124, 7][..]].concat());
    put(root, "session", "client", &[2, 1, 2, 4, 1, 4, 2, 5, 3, 1, 2, 3]);

    put(root, "quantity", "duration", "1m30s".as_bytes());
    put(root, "quantity", "rate", "1.5Gbit".as_bytes());
    put(root, "quantity", "size", "16 MiB".as_bytes());
    let topologies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../topologies");
    for entry in fs::read_dir(topologies).expect("the topologies") {
        let path = entry.expect("a topology").path();
        let Some(name) = path.file_stem().filter(|_| path.extension().is_some_and(|e| e == "toml")) else { continue };
        let text = fs::read_to_string(&path).expect("text");
        put(root, "scenario", &name.to_string_lossy(), format!("{text}\0seed\x007").as_bytes());
    }
}
