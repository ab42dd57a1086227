//! From the file as written to the scenario as meant: names become indices, defaults are filled in, ranges are checked.

mod changes;
mod flows;
mod hosts;
mod links;
mod params;
mod paths;
mod place;
mod switches;
mod tcp;
mod traffic;

use crate::error::Problem;
use crate::model::Scenario;
use crate::raw::File;
use crate::trace::Traces;
use place::Spot;

/// `default_name` is what the scenario is called if the file does not say; `traces` reads the files that it names.
pub(crate) fn check(file: &File, default_name: &str, traces: &Traces) -> Result<Scenario, Problem> {
    let root = Spot::default();
    let switches = switches::switches(&root.key("switch"), &file.switch)?;
    let links = links::links(&root.key("link"), &file.link, &switches, traces)?;
    let paths = paths::paths(&root.key("path"), &file.path, &links, !switches.is_empty())?;
    let traffic = traffic::traffic(&root.key("traffic"), &file.traffic, &links, &paths)?;
    let flows = flows::flows(&root.key("flow"), &file.flow, &paths)?;
    let end = file.end;
    if let Some(end) = end {
        params::time(&root.key("end"), end)?;
        params::above_zero(&root.key("end"), end.0)?;
    }
    flows::all_end(&root.key("flow"), &flows, end)?;
    tcp::tcp(&root.key("tcp"), &file.tcp)?;
    let hosts = hosts::hosts(&root.key("host"), &file.host)?;
    tcp::control(&root.key("control"), &file.control)?;
    let changes = changes::changes(&root.key("change"), &file.change, &links, &traffic, traces)?;
    let name = match &file.name {
        Some(name) => place::name(&root.key("name"), name)?,
        None => default_name.to_owned(),
    };
    let (seed, tcp, control) = (file.seed.unwrap_or(1), file.tcp.clone(), file.control.clone());
    if i64::try_from(seed).is_err() {
        // TOML has no larger number, and a scenario must be writable as TOML
        return Err(root.key("seed").refuse("too large").allowed(format!("0 to {}", i64::MAX)));
    }
    let scenario = Scenario { name, seed, end, switches, links, paths, traffic, flows, tcp, hosts, control, changes };
    paths::repetitions_fit(&root.key("path"), &scenario)?;
    Ok(scenario)
}
