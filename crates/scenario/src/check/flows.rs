//! `[[flow]]`, and what flows and traffic have in common: the controller's name and the web workload.

use pathcast_base::{Bytes, Nanos};

use super::params;
use super::place::{self, Spot};
use crate::addresses::MAX_SUBFLOWS;
use crate::error::Problem;
use crate::model::{Flow, Path, Web, Workload};
use crate::raw;

const CONTROL: &str = "cubic";
const PAGE: Bytes = Bytes(60_000);
const PAGE_SHAPE: f64 = 1.2;
const THINK: Nanos = Nanos::secs(15);

pub(super) fn flows(spot: &Spot, raw: &[raw::Flow], paths: &[Path]) -> Result<Vec<Flow>, Problem> {
    let mut flows = Vec::new();
    for (i, raw) in raw.iter().enumerate() {
        flows.push(flow(&spot.index(i), raw, paths)?);
    }
    place::distinct(spot, "flow", &flows.iter().map(|flow: &Flow| flow.name.as_str()).collect::<Vec<_>>())?;
    Ok(flows)
}

fn flow(spot: &Spot, raw: &raw::Flow, paths: &[Path]) -> Result<Flow, Problem> {
    let name = place::name(&spot.key("name"), &raw.name)?;
    let known: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
    if raw.paths.is_empty() {
        return Err(spot.key("paths").refuse("a flow needs a path").allowed(known.join(", ")));
    }
    let mut used = Vec::new();
    for (i, path) in raw.paths.iter().enumerate() {
        let spot = spot.key("paths").index(i);
        let path_index = place::find(&spot, "path", path, &known)?;
        if used.contains(&path_index) {
            let problem = spot.refuse(format!("path `{path}` is in the list already"));
            return Err(problem.allowed("every path once; `subflows` repeats them"));
        }
        used.push(path_index);
    }
    let subflows = raw.subflows.unwrap_or(used.len() as u32);
    params::within(&spot.key("subflows"), subflows.into(), 1, MAX_SUBFLOWS.into(), "")?;
    let start = params::span(spot, raw.start, raw.stop)?;
    let workload = match (raw.bytes, &raw.web, raw.stop) {
        (Some(_), Some(_), _) => return Err(alternatives(spot, "web")),
        (Some(_), _, Some(_)) => return Err(alternatives(spot, "stop")),
        (Some(bytes), None, None) => {
            params::above_zero(&spot.key("bytes"), bytes.0)?;
            Workload::Bytes(bytes)
        }
        (None, Some(raw), _) => Workload::Web(web(&spot.key("web"), raw.page, raw.shape, raw.think)?),
        (None, None, _) => Workload::Greedy,
    };
    let control = control(spot, &raw.control)?;
    Ok(Flow { name, paths: used, subflows, control, workload, start, stop: raw.stop })
}

fn alternatives(spot: &Spot, key: &str) -> Problem {
    spot.key(key).refuse("does not go together with `bytes`").allowed("either `bytes`, or `stop`, `web` or both")
}

/// Without `end` the run lasts until the last flow is done, so every flow must come to an end.
pub(super) fn all_end(spot: &Spot, flows: &[Flow], end: Option<Nanos>) -> Result<(), Problem> {
    let endless = |flow: &Flow| flow.stop.is_none() && !matches!(flow.workload, Workload::Bytes(_));
    match flows.iter().position(endless) {
        Some(i) if end.is_none() => {
            let text = format!("the flow `{}` never ends, and the scenario has no `end`", flows[i].name);
            Err(spot.index(i).refuse(text).allowed("`bytes` or `stop` in the flow, or `end` at the top of the file"))
        }
        _ => Ok(()),
    }
}

/// The controller of the table at `spot`. Whether it exists is for the register to say.
pub(super) fn control(spot: &Spot, control: &Option<String>) -> Result<String, Problem> {
    match control {
        Some(control) => place::name(&spot.key("control"), control),
        None => Ok(CONTROL.to_owned()),
    }
}

/// The web workload whose keys lie at `spot`.
pub(super) fn web(spot: &Spot, page: Option<Bytes>, shape: Option<f64>, think: Option<Nanos>) -> Result<Web, Problem> {
    let web = Web { page: page.unwrap_or(PAGE), shape: shape.unwrap_or(PAGE_SHAPE), think: think.unwrap_or(THINK) };
    params::above_zero(&spot.key("page"), web.page.0)?;
    params::time(&spot.key("think"), web.think)?;
    if !(web.shape > 1.0 && web.shape.is_finite()) {
        return Err(spot.key("shape").refuse("such a distribution has no mean").allowed("above 1"));
    }
    Ok(web)
}
