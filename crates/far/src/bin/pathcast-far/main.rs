//! `pathcast-far`: `pathcast serve` as one program without Python, with the same options, key files, limits, log lines,
//! documents and exit statuses.

mod arguments;
#[cfg(any(target_env = "musl", test))]
mod keeping;
mod said;
mod signals;

use std::ffi::OsString;
use std::io::{self, BufRead, Read};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{env, process, thread};

use pathcast_far::{Config, Far, FarError, KeyText, keyfile, limits};
use pathcast_net::HostSockets;

use crate::arguments::{Asked, Options};
use crate::said::End;
use crate::signals::Begun;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: keeping::Keeping = keeping::Keeping::new();

/// How long the last lines may take where nobody reads them.
const LAST_WORDS: Duration = Duration::from_secs(1);

fn main() {
    // glibc gives threads heaps of their own, each with holes of its own: with many sessions memory that a router lacks
    #[cfg(target_env = "gnu")]
    // SAFETY: called before there is another thread; it only sets a parameter
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let json = arguments::wants_json(&words);
    let (sender, ended) = mpsc::channel();
    let begun = signals::take(sender.clone(), move |number| process::exit(End::signal(number).tell(json)));
    let asked = arguments::parse(&words).map_err(|e| End::of(&e));
    let status = match asked.and_then(|asked| run(asked, &begun, sender, &ended)) {
        Ok(()) => 0,
        Err(end) => end.tell(json),
    };
    process::exit(status);
}

fn run(
    asked: Asked,
    begun: &Begun,
    sender: mpsc::Sender<Option<i32>>,
    ended: &mpsc::Receiver<Option<i32>>,
) -> Result<(), End> {
    let options = match asked {
        Asked::Help => return print(arguments::HELP.trim_end()),
        Asked::Version => return print(concat!("pathcast-far ", env!("CARGO_PKG_VERSION"))),
        Asked::Serve(options) => options,
    };
    if let Some(file) = &options.new_key {
        return new_key(file, options.json);
    }
    let piped = options.key_file.as_deref() == Some(Path::new("-"));
    let (config, ids) = config(&options, piped).map_err(|e| End::of(&e))?;
    let far = Arc::new(Far::start(Arc::new(HostSockets), config).map_err(|e| End::of(&e))?);
    begun.set();
    greet(&far, &options, &ids)?;

    let (over, told) = (far.said(), Arc::downgrade(&far));
    let (talking, until) = mpsc::channel::<()>();
    let (silent, done) = mpsc::channel::<()>();
    let talker = move || {
        said::report(&told, &over, &until);
        drop(silent);
    };
    spawn("report", talker)?;
    if piped {
        let input = move || {
            let mut more = [0; 4096];
            while matches!(io::stdin().read(&mut more), Ok(1..)) {} // whoever started it holds the other end
            let _ = sender.send(None);
        };
        spawn("input", input)?;
    }
    let end = ended.recv().expect("the thread of the signals lives");
    said::stopped(far); // first, so that what it ends is logged
    drop(talking);
    let _ = done.recv_timeout(LAST_WORDS);
    match end {
        Some(number) => Err(End::signal(number)),
        None => Ok(()),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), End> {
    let system =
        |e: io::Error| End { code: "system".into(), message: format!("starting a thread: {e}"), hint: None, exit: 1 };
    thread::Builder::new().name(name.into()).spawn(work).map(drop).map_err(system)
}

fn print(line: &str) -> Result<(), End> {
    said::text(line).map_err(|e| End::output(&e))
}

fn new_key(file: &Path, json: bool) -> Result<(), End> {
    let key = keyfile::write(file, "key1").map_err(|e| End::of(&e))?;
    if json {
        let about = serde_json::json!({ "file": file.to_string_lossy(), "id": key.id });
        return said::document("pathcast.key/1", about).map_err(|e| End::output(&e));
    }
    print(&format!(
        "wrote the key `{}` to {}; copy the file to the clients over a safe channel",
        key.id,
        file.display()
    ))
}

/// What the options mean, and the names of the keys.
fn config(options: &Options, piped: bool) -> Result<(Config, Vec<String>), FarError> {
    if options.key_file.is_some() && options.open {
        return Err(FarError::usage(
            "--key-file and --open exclude each other: with a key file only its keys are served",
        ));
    }
    if options.stamp_open && options.stamp_port.is_none() {
        return Err(FarError::usage("--stamp-open goes with --stamp-port"));
    }
    let addresses = |option: &str, written: &[String]| -> Result<Vec<IpAddr>, FarError> {
        written.iter().map(|text| arguments::address(option, text)).collect()
    };
    let bind = addresses("--bind", &options.bind)?;
    let announce = addresses("--announce", &options.announce)?;
    let texts = match &options.key_file {
        Some(_) if piped => keyfile::parse(&first_line(io::stdin().lock()), "standard input")?,
        Some(file) => keyfile::read(file)?,
        None => vec![KeyText::open()],
    };
    let loopback = is_private(options);
    if loopback && bind.iter().any(|address| !address.is_loopback()) {
        let message = "without a key the far end listens on loopback only";
        return Err(FarError::advised(message, "give --key-file FILE, or --open"));
    }
    let config = Config {
        bind,
        loopback,
        port: options.port,
        keys: texts.iter().map(KeyText::key).collect::<Result<_, _>>()?,
        announce,
        limits: limits(&options.limit)?,
        stamp_port: options.stamp_port,
        stamp_open: options.stamp_open || options.key_file.is_none(),
        log: options.log,
    };
    Ok((config, texts.into_iter().map(|key| key.id).collect()))
}

/// Whether only this host is served.
fn is_private(options: &Options) -> bool {
    options.key_file.is_none() && !options.open
}

/// The key that a client hands over on standard input.
fn first_line(input: impl BufRead) -> String {
    let mut line = Vec::new();
    let _ = input.take(keyfile::LARGEST_BYTES).read_until(b'\n', &mut line); // what is wrong with it is told as of a file
    String::from_utf8_lossy(&line).into_owned()
}

/// Tells whoever started it where it listens, and for whom.
fn greet(far: &Far, options: &Options, ids: &[String]) -> Result<(), End> {
    if options.json {
        return said::document("pathcast.serve/1", far.describe()).map_err(|e| End::output(&e));
    }
    let listening: Vec<String> = far.listening().iter().map(ToString::to_string).collect();
    print(&format!("listening on {}", listening.join(", ")))?;
    if is_private(options) {
        said::complain("only on loopback; give --key-file FILE or --open to serve others");
    }
    let whom = match &options.key_file {
        _ if !far.serves() => "nobody".into(),
        None => "everyone".into(),
        Some(_) => {
            format!("who has the key {}", ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" or "))
        }
    };
    said::complain(&format!("serving {whom}, until this command ends (Ctrl-C)"));
    Ok(())
}
