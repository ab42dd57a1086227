//! What is wrong with a scenario: where it stands, the key, the value, and what would be allowed.

use std::fmt;
use std::path::{Path, PathBuf};

use pathcast_base::{Exit, Fault};

use crate::tree::{Node, Step};

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the file, counted from 1.
    Line(usize),
    /// A `--set`, as it was given (`KEY=VALUE`).
    Set(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Set(text) => write!(f, "--set {text}"),
        }
    }
}

/// One refused key or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file, if the scenario came from one.
    pub file: Option<PathBuf>,
    /// Where the refused thing was written; where it is missing, the table that lacks it.
    pub place: Place,
    /// The dotted key, as `--set` takes it, for example `link.bottleneck.rate`.
    pub key: String,
    /// The refused value as written; none where something is missing.
    pub value: Option<String>,
    /// What is wrong with it.
    pub problem: String,
    /// The allowed values or their range.
    pub allowed: Option<String>,
    /// What was probably meant.
    pub hint: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(file), Place::Line(_)) = (&self.file, &self.place) {
            write!(f, "{}, ", file.display())?;
        }
        write!(f, "{}: ", self.place)?;
        let what = match &self.value {
            Some(value) => format!("{} = {value}", self.key),
            None => self.key.clone(),
        };
        // a `--set` shows its key and value already
        let shown = matches!(&self.place, Place::Set(text) if text.replacen('=', " = ", 1) == what);
        if !what.is_empty() && !shown {
            write!(f, "{what}: ")?;
        }
        f.write_str(&self.problem)?;
        match &self.allowed {
            Some(allowed) => write!(f, "; allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

/// Why a scenario was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read the scenario {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{}line {line}, column {column}: not TOML: {message}", in_file(file))]
    Syntax {
        /// The file, if the scenario came from one.
        file: Option<PathBuf>,
        /// Counted from 1.
        line: usize,
        /// In characters, counted from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// A key or a value is refused.
    #[error("{0}")]
    Refused(Box<Refusal>),
}

fn in_file(file: &Option<PathBuf>) -> String {
    file.as_ref().map(|file| format!("{}, ", file.display())).unwrap_or_default()
}

impl ScenarioError {
    pub(crate) fn syntax(line: usize, column: usize, message: &str) -> Self {
        let message = message.lines().collect::<Vec<_>>().join(", ");
        ScenarioError::Syntax { file: None, line, column, message }
    }

    /// The same error, naming the file that it is about.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        match &mut self {
            ScenarioError::Refused(refusal) => refusal.file = Some(path.to_owned()),
            ScenarioError::Syntax { file, .. } => *file = Some(path.to_owned()),
            ScenarioError::Unreadable { .. } => {}
        }
        self
    }

    /// The line that the error is about, if it is about one.
    pub fn line(&self) -> Option<usize> {
        match self {
            ScenarioError::Syntax { line, .. } => Some(*line),
            ScenarioError::Refused(refusal) => match refusal.place {
                Place::Line(line) => Some(line),
                Place::Set(_) => None,
            },
            ScenarioError::Unreadable { .. } => None,
        }
    }
}

impl Fault for ScenarioError {
    fn code(&self) -> &'static str {
        "scenario"
    }

    fn hint(&self) -> Option<String> {
        match self {
            ScenarioError::Unreadable { .. } => {
                Some("give the path of a scenario file (TOML) that you may read".into())
            }
            ScenarioError::Syntax { .. } => {
                Some("texts stand in double quotes, every [[table]] on a line of its own; see docs/scenario.md".into())
            }
            ScenarioError::Refused(refusal) => refusal.hint.clone().or_else(|| Some("see docs/scenario.md".into())),
        }
    }

    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// A problem on its way to become a `ScenarioError`: it knows its steps, not yet their line.
#[derive(Debug)]
pub(crate) struct Problem {
    pub steps: Vec<Step>,
    pub text: String,
    pub allowed: Option<String>,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(text: impl Into<String>) -> Self {
        Problem { steps: Vec::new(), text: text.into(), allowed: None, hint: None }
    }

    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// The allowed names, and the nearest of them to the wrong one.
    pub fn choices<T: AsRef<str>>(mut self, wrong: &str, choices: &[T]) -> Self {
        let names: Vec<&str> = choices.iter().map(AsRef::as_ref).collect();
        self.hint = nearest(wrong, &names).map(|name| format!("did you mean `{name}`?"));
        self.allowed(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }

    /// Seen from one level further out.
    pub fn within(mut self, step: Step) -> Self {
        self.steps.insert(0, step);
        self
    }

    pub fn finish(self, root: &Node) -> ScenarioError {
        let (place, key, value) = root.locate(&self.steps);
        self.placed(place, key, value)
    }

    pub fn placed(self, place: Place, key: String, value: Option<String>) -> ScenarioError {
        let Problem { text: problem, allowed, hint, .. } = self;
        ScenarioError::Refused(Box::new(Refusal { file: None, place, key, value, problem, allowed, hint }))
    }
}

/// The name nearest to `wrong`, if it is near enough to be what was meant.
fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Option<&'a str> {
    // a text this long is no slip of the fingers, and the table below would be large
    if wrong.len() > 64 {
        return None;
    }
    let near = |name: &&&str| distance(wrong, name) <= (wrong.chars().count() / 2).max(1);
    names.iter().filter(near).min_by_key(|name| distance(wrong, name)).copied()
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let cost = (corner + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[b.len()]
}
