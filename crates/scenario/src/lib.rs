//! Scenarios: the TOML format in which networks, the traffic in them and the transfers over them are written once, for
//! the simulator and for the emulator. The manual of the format is `docs/scenario.md`.
//!
//! [`Scenario::parse`] gives the checked form: whatever has one of these in hand need not check again. A refusal names
//! the line (or the `--set`), the key, the value, and what would be allowed.

mod addresses;
mod amend;
mod check;
mod error;
mod forms;
mod host;
mod model;
mod raw;
mod read;
mod sets;
mod tcp;
mod template;
mod trace;
mod tree;
mod whole;

use std::collections::BTreeSet;
use std::path::Path as FilePath;

pub use addresses::{MAX_PATHS, MAX_SUBFLOWS, PathAddresses, addresses};
pub use amend::{AmendError, Amendment, LINK_KEYS};
pub use error::{Place, Refusal, ScenarioError};
pub use host::{End, Host, Hosts};
pub use model::{
    Change, Changed, Direction, Flow, Hop, Link, Path, Scenario, Source, Switch, Traffic, Value, Web, Workload,
};
use serde::Serialize;
pub use tcp::{Join, Preset, Recovery, Scheduler, Tcp};
pub use template::Template;

/// What the first key of [`Scenario::to_json`] says.
pub const JSON_SCHEMA: &str = "pathcast.scenario/1";

impl Scenario {
    /// Reads and checks a scenario. `sets` are the keys and values of `--set`, applied in their order before the checks.
    /// A scenario that does not say its name is called `scenario`.
    pub fn parse(text: &str, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Scenario::parse_in(text, sets, None)
    }

    /// The same; relative paths of the files that it names are relative to the directory `base`, without one to the
    /// current directory.
    pub fn parse_in(text: &str, sets: &[(String, String)], base: Option<&FilePath>) -> Result<Scenario, ScenarioError> {
        Template::parse_in(text, base)?.scenario(sets)
    }

    /// The same from a file. A scenario that does not say its name is called as the file is.
    pub fn load(path: impl AsRef<FilePath>, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        let path = path.as_ref();
        let unreadable = |reason: String| ScenarioError::Unreadable { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Scenario::from_text(&text, sets, Some(path))
    }

    /// The same from a file's text that was read already; without a file as [`Scenario::parse`].
    pub fn from_text(
        text: &str,
        sets: &[(String, String)],
        file: Option<&FilePath>,
    ) -> Result<Scenario, ScenarioError> {
        Template::from_text(text, file)?.scenario(sets)
    }

    /// The checked form as one JSON document, `"schema"` first. Quantities are texts with their units, as in the file,
    /// or have the unit in their names; [`Scenario::from_json`] reads it back to an equal value.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: &'a str,
            #[serde(flatten)]
            scenario: &'a Scenario,
        }
        serde_json::to_string(&Document { schema: JSON_SCHEMA, scenario: self })
            .expect("the checked form has only finite numbers and textual keys")
    }

    /// Reads back what [`Scenario::to_json`] wrote, for handing a scenario to another process of pathcast. It trusts
    /// its input, but for the digests of traces, whose files it reads again; files of users go through [`Scenario::load`].
    pub fn from_json(text: &str) -> Result<Scenario, serde_json::Error> {
        let mut scenario: Scenario = serde_json::from_str(text)?;
        let of_changes = scenario.changes.iter_mut().filter_map(|change| match &mut change.what {
            Changed::Link { params, .. } => Some(params),
            Changed::Traffic { .. } => None,
        });
        let links = scenario.links.iter_mut().flat_map(|link| [&mut link.ab, &mut link.ba]);
        let traces = trace::Traces::new(None);
        for trace in links.chain(of_changes).filter_map(|params| params.trace.as_mut()) {
            traces.restore(trace).map_err(serde::de::Error::custom)?;
        }
        Ok(scenario)
    }

    /// The congestion controllers that flows and traffic name, and those that have parameters.
    pub fn controls(&self) -> BTreeSet<&str> {
        let of_traffic = self.traffic.iter().filter_map(|traffic| match &traffic.source {
            Source::Tcp { control, .. } | Source::Web { control, .. } => Some(control.as_str()),
            Source::Virtual { .. } => None,
        });
        let of_flows = self.flows.iter().map(|flow| flow.control.as_str());
        of_flows.chain(of_traffic).chain(self.control.keys().map(String::as_str)).collect()
    }

    /// Keeps only the flows with these names.
    pub fn keep_flows(&mut self, names: &[String]) {
        self.flows.retain(|flow| names.contains(&flow.name));
    }

    /// The index of the link called `name`.
    pub fn link(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }

    /// The index of the path called `name`.
    pub fn path(&self, name: &str) -> Option<usize> {
        self.paths.iter().position(|path| path.name == name)
    }

    /// The index of the flow called `name`.
    pub fn flow(&self, name: &str) -> Option<usize> {
        self.flows.iter().position(|flow| flow.name == name)
    }
}

/// The JSON schema of the file format.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::File).to_value()
}

impl ScenarioError {
    /// What a check of another room refuses, such as a controller that does not exist, as the scenario's own checks say
    /// it: with the `--set` or the line.
    pub fn refused(
        text: &str,
        sets: &[(String, String)],
        file: Option<&FilePath>,
        key: String,
        problem: String,
        allowed: String,
    ) -> ScenarioError {
        let line = tree::Node::parse(text).ok().and_then(|root| sets::line_of(&root, &key));
        // with a single flow `control` is short for `flow.NAME.control`; with more of them it has been refused
        let means = |set: &str| {
            set == key
                || (set == "control" && key.starts_with("flow.") && key.ends_with(".control"))
                || (line.is_none() && set.starts_with(&format!("{key}.")))
        };
        let of_set = sets.iter().rev().find(|(set, _)| means(set.trim()));
        let place = match of_set {
            Some((set, value)) => Place::Set(format!("{set}={value}")),
            None => Place::Line(line.unwrap_or(1)),
        };
        let key = if of_set.is_some() { String::new() } else { key };
        ScenarioError::Refused(Box::new(Refusal {
            file: file.map(FilePath::to_path_buf),
            place,
            key,
            value: None,
            problem,
            allowed: (!allowed.is_empty()).then_some(allowed),
            hint: None,
        }))
    }
}
