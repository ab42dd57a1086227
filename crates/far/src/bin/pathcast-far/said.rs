//! What the program says: its document, errors, warnings, the log.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pathcast_base::Fault;
use pathcast_far::{Far, Said, plain};
use serde::Serialize;

/// `{"schema": "pathcast.<schema>/1", …}`, as all commands print it.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'a str,
    #[serde(flatten)]
    about: T,
}

/// Whether the one document is out, or about to be: there is no other one after it, whatever happens then.
static DOCUMENTED: AtomicBool = AtomicBool::new(false);

/// Prints the document.
///
/// # Errors
/// Those of standard output.
pub fn document(schema: &str, about: impl Serialize) -> io::Result<()> {
    DOCUMENTED.store(true, Ordering::Relaxed);
    text(&pretty(&Document { schema, about }))
}

/// Prints a line.
///
/// # Errors
/// Those of standard output.
pub fn text(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn pretty(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let form = serde_json::ser::PrettyFormatter::with_indent(b" ");
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, form)).expect("plain data");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// How the program ends when it does not end well.
pub struct End {
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
    pub exit: i32,
}

impl End {
    pub fn of(fault: &impl Fault) -> End {
        let message = plain(&fault.to_string());
        End { code: fault.code().into(), message, hint: fault.hint(), exit: fault.exit() as i32 }
    }

    /// By a signal.
    pub fn signal(number: i32) -> End {
        let (code, message) = match number {
            libc::SIGINT => ("interrupted", "interrupted".into()),
            _ => ("terminated", format!("ended by signal {number}")),
        };
        End { code: code.into(), message, hint: None, exit: 128 + number }
    }

    /// Of standard output.
    pub fn output(error: &io::Error) -> End {
        let (code, message, hint) = match error.kind() {
            io::ErrorKind::BrokenPipe => ("broken-pipe", "the output was closed".into(), None),
            io::ErrorKind::StorageFull => {
                ("no-space", "no space left to write to".into(), Some("make room, or write elsewhere".into()))
            }
            _ => ("system", format!("cannot write the output: {}", plain(&error.to_string())), None),
        };
        End { code: code.into(), message, hint, exit: 1 }
    }

    /// Says it on standard error and, if `json` and there was none yet, as a document; the exit status. Where nobody can
    /// read it, that is so.
    pub fn tell(&self, json: bool) -> i32 {
        if json && self.code != "broken-pipe" && !DOCUMENTED.swap(true, Ordering::Relaxed) {
            let about = serde_json::json!({
                "code": self.code, "message": self.message, "hint": self.hint, "exit": self.exit
            });
            let _ = text(&pretty(&serde_json::json!({ "error": about })));
        }
        complain(&format!("pathcast-far: {}", printable(&self.message)));
        if let Some(hint) = &self.hint {
            complain(&format!("hint: {}", printable(hint)));
        }
        self.exit
    }
}

/// A line on standard error.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What a file says must not command the terminal.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Says what the far end warns of, and what it logs, until `over` is closed.
pub fn report(far: &Weak<Far>, said: &Said, over: &Receiver<()>) {
    let mut ended = false;
    loop {
        if let Some(far) = far.upgrade() {
            far.look();
        }
        said.warnings().iter().for_each(|warning| complain(&format!("note: {warning}")));
        said.log().iter().for_each(|(at, line)| complain(&format!("{} {line}", local_time(*at))));
        if ended {
            return;
        }
        ended = over.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout);
    }
}

/// `2027-03-01 06:00:00 CET`, of seconds since 1970.
fn local_time(at: f64) -> String {
    let mut written = [0u8; 64];
    #[allow(deprecated)] // of musl, whose size may change: it is inferred nowhere else
    let at = at as libc::time_t;
    // SAFETY: a zeroed `tm` is valid, the format ends with 0, and no more is written than there is room
    let length = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&at, &mut parts);
        let form = c"%Y-%m-%d %H:%M:%S %Z";
        libc::strftime(written.as_mut_ptr().cast(), written.len(), form.as_ptr(), &parts)
    };
    String::from_utf8_lossy(&written[..length]).into_owned()
}

/// Stops the far end: when this returns it listens no more.
pub fn stopped(far: Arc<Far>) {
    let mut far = far;
    loop {
        match Arc::try_unwrap(far) {
            Ok(last) => return drop(last),
            Err(shared) => far = shared, // it is just looked at
        }
        std::thread::yield_now();
    }
}
