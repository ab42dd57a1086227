//! The command line: the options of `pathcast serve`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use lexopt::prelude::*;
use pathcast_far::FarError;

pub const HELP: &str = "\
Usage: pathcast-far [OPTIONS]

Answer probes and receive transfers, until interrupted.

  --key-file FILE     0600 file of lines `ID SECRET`; see --new-key. -: one line
                      of standard input, until that closes.
  --new-key FILE      Make a key file with one fresh key, and end.
  --open              Serve everyone without a key, on every address.
  --bind ADDRESS      An address to listen on; may be repeated (default: all
                      with a key or --open, else loopback).
  --port PORT         TCP and UDP port; 0: the system chooses one (default: 5275).
  --announce ADDRESS  An address of this host to tell clients; may be repeated
                      (default: all that are up).
  --limit NAME=VALUE  What measurements are granted, for example rate=100Mbit;
                      may be repeated.
  --stamp-port PORT   UDP port of a STAMP reflector (RFC 8762); the standard's
                      862 needs a privilege (default: none).
  --stamp-open        The reflector answers everyone, not only who has a key of
                      the key file.
  --log               Say who opens sessions and sends: key, address, bytes; on
                      standard error.
  --json              Print one JSON document.
  --version           Print the version.
  --help              Show this message and exit.
";
const SEE_HELP: &str = "try `pathcast-far --help`";

/// What was asked for.
pub enum Asked {
    Help,
    Version,
    Serve(Options),
}

/// Of `pathcast serve`, by the same names.
pub struct Options {
    pub key_file: Option<PathBuf>,
    pub new_key: Option<PathBuf>,
    pub open: bool,
    pub bind: Vec<String>,
    pub port: u16,
    pub announce: Vec<String>,
    pub limit: Vec<String>,
    pub stamp_port: Option<u16>,
    pub stamp_open: bool,
    pub log: bool,
    pub json: bool,
}

/// Whether errors are to be told as JSON too, also those of the command line itself.
pub fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Reads the words behind the program's name. A first word `serve` is passed over, so that the program can stand for
/// `pathcast` where that is called.
///
/// # Errors
/// Usage, for an unknown option, a value that is missing, superfluous or out of range.
pub fn parse(arguments: &[OsString]) -> Result<Asked, FarError> {
    let words = match arguments.first() {
        Some(word) if word == "serve" => &arguments[1..],
        _ => arguments,
    };
    let mut parser = lexopt::Parser::from_args(words);
    let mut options = Options {
        key_file: None,
        new_key: None,
        open: false,
        bind: Vec::new(),
        port: pathcast_net::DEFAULT_PORT,
        announce: Vec::new(),
        limit: Vec::new(),
        stamp_port: None,
        stamp_open: false,
        log: false,
        json: false,
    };
    let mut asked = None;
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Long("key-file") => options.key_file = Some(file("--key-file", &mut parser)?),
            Long("new-key") => options.new_key = Some(file("--new-key", &mut parser)?),
            Long("open") => options.open = true,
            Long("bind") => options.bind.push(text(&mut parser)?),
            Long("port") => options.port = port("--port", &text(&mut parser)?)?,
            Long("announce") => options.announce.push(text(&mut parser)?),
            Long("limit") => options.limit.push(text(&mut parser)?),
            Long("stamp-port") => options.stamp_port = Some(port("--stamp-port", &text(&mut parser)?)?),
            Long("stamp-open") => options.stamp_open = true,
            Long("log") => options.log = true,
            Long("json") => options.json = true,
            Long("help") => asked = asked.or(Some(Asked::Help)),
            Long("version") => asked = asked.or(Some(Asked::Version)),
            Value(word) => {
                let message = format!("Got unexpected extra argument ({})", word.to_string_lossy());
                return Err(FarError::advised(message, SEE_HELP));
            }
            Long(name) => return Err(FarError::advised(format!("No such option: --{name}"), SEE_HELP)),
            Short(name) => return Err(FarError::advised(format!("No such option: -{name}"), SEE_HELP)),
        }
    }
    Ok(asked.unwrap_or(Asked::Serve(options)))
}

/// An IP address of an option.
///
/// # Errors
/// Usage for anything else.
pub fn address(option: &str, text: &str) -> Result<IpAddr, FarError> {
    let wrong = |_| match text.split_once('%') {
        // a zone means nothing elsewhere
        Some((address, _)) if address.parse::<Ipv6Addr>().is_ok() => {
            FarError::usage(format!("{option} `{text}`: write it without a zone, such as 2001:db8::1"))
        }
        _ => FarError::usage(format!("{option} `{text}` is not an IP address, such as 192.0.2.1 or 2001:db8::1")),
    };
    text.parse().map_err(wrong)
}

fn port(option: &str, text: &str) -> Result<u16, FarError> {
    let wrong = |_| FarError::advised(format!("Invalid value for '{option}': `{text}`; allowed: 0 to 65535"), SEE_HELP);
    text.parse().map_err(wrong)
}

/// A file's name; an empty one, as of a variable that is not set, is refused.
fn file(option: &str, parser: &mut lexopt::Parser) -> Result<PathBuf, FarError> {
    let name = parser.value().map_err(wrong)?;
    if name.is_empty() {
        return Err(FarError::advised(format!("Invalid value for '{option}': `` is no file"), SEE_HELP));
    }
    Ok(name.into())
}

fn text(parser: &mut lexopt::Parser) -> Result<String, FarError> {
    let value = parser.value().map_err(wrong)?;
    value.into_string().map_err(|value| FarError::usage(format!("`{}` is not text", value.to_string_lossy())))
}

fn wrong(error: lexopt::Error) -> FarError {
    let message = match error {
        lexopt::Error::MissingValue { option: Some(option) } => format!("Option '{option}' requires an argument."),
        lexopt::Error::UnexpectedValue { option, .. } => format!("Option '{option}' does not take a value."),
        error => error.to_string(),
    };
    FarError::advised(message, SEE_HELP)
}
