//! Where a check is looking, and the checks of names.

use crate::error::Problem;
use crate::tree::Step;

/// A way into the file.
#[derive(Clone, Default)]
pub(super) struct Spot(Vec<Step>);

impl Spot {
    pub fn key(&self, key: &str) -> Spot {
        self.step(Step::Key(key.to_owned()))
    }

    pub fn index(&self, index: usize) -> Spot {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Spot {
        let mut steps = self.0.clone();
        steps.push(step);
        Spot(steps)
    }

    /// A problem at this place.
    pub fn refuse(&self, text: impl Into<String>) -> Problem {
        Problem { steps: self.0.clone(), ..Problem::new(text) }
    }
}

const LONGEST: usize = 64;

/// A name that can stand in `--set`, in a file name and on a command line.
pub(super) fn name(spot: &Spot, name: &str) -> Result<String, Problem> {
    let ok = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && name.len() <= LONGEST;
    if ok {
        return Ok(name.to_owned());
    }
    Err(spot
        .refuse("not a name")
        .allowed(format!("1 to {LONGEST} letters, digits, `_` and `-`, the first a letter or a digit")))
}

/// The index of `name` among the names that exist.
pub(super) fn find(spot: &Spot, what: &str, name: &str, names: &[&str]) -> Result<usize, Problem> {
    names
        .iter()
        .position(|known| *known == name)
        .ok_or_else(|| spot.refuse(format!("there is no {what} `{name}`")).choices(name, names))
}

/// Refuses the second of two equal names. `names` are in the order of the list at `spot`.
pub(super) fn distinct(spot: &Spot, what: &str, names: &[&str]) -> Result<(), Problem> {
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            let spot = spot.index(i).key("name");
            return Err(spot.refuse(format!("there is already a {what} `{name}`")).allowed("a name of its own"));
        }
    }
    Ok(())
}
