//! The controllers that a scenario names, with its values for their parameters.

use pathcast_congestion::{CongestionError, Params, controller, controllers, parse_value};
use pathcast_link::Params as LinkParams;
use pathcast_scenario::{Change, Changed, Direction, Preset, Scenario, Source, Value, Workload};

use crate::error::SimError;

/// What the kernel's CUBIC does otherwise than RFC 9438: its least growth in an RTT before the first loss [1/1000], and the growth of
/// its estimate of Reno, which stays 8/15 of a packet an RTT.
const LINUX: [(&str, u64); 2] = [("first", 50), ("friendly", 533)];

/// Controllers with their parameters, one for each name that the scenario uses.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub controls: Vec<Params>,
    pub flow_control: Vec<usize>,
    /// By traffic; of virtual traffic it says nothing.
    pub traffic_control: Vec<usize>,
}

impl Setup {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, SimError> {
        let mut setup = Setup { controls: Vec::new(), flow_control: Vec::new(), traffic_control: Vec::new() };
        for flow in &scenario.flows {
            let control = setup.control(scenario, &flow.control, &format!("flow.{}.control", flow.name))?;
            setup.flow_control.push(control);
        }
        for traffic in &scenario.traffic {
            let index = match &traffic.source {
                Source::Tcp { control, .. } | Source::Web { control, .. } => {
                    setup.control(scenario, control, &format!("traffic.{}.control", traffic.name))?
                }
                Source::Virtual { .. } => 0,
            };
            setup.traffic_control.push(index);
        }
        takes_time(scenario)?;
        for name in scenario.control.keys() {
            setup.control(scenario, name, &format!("control.{name}"))?;
        }
        Ok(setup)
    }

    /// The index of the controller called `name`, which `key` of the scenario asks for.
    pub(crate) fn control(&mut self, scenario: &Scenario, name: &str, key: &str) -> Result<usize, SimError> {
        if let Some(index) = self.controls.iter().position(|params| params.info().name == name) {
            return Ok(index);
        }
        let info = controller(name).map_err(|_| SimError::Refused {
            key: key.into(),
            problem: format!("there is no controller `{name}`"),
            allowed: controllers().iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
        })?;
        let mut params = Params::new(info);
        if name == "cubic" && scenario.tcp.preset == Preset::Linux {
            for (name, value) in LINUX {
                let _ = params.set(name, value); // the kernel's own, which `cubic` stands for
            }
        }
        for (parameter, value) in scenario.control.get(name).into_iter().flatten() {
            set(&mut params, parameter, value).map_err(|(problem, allowed)| SimError::Refused {
                key: format!("control.{name}.{parameter}"),
                problem,
                allowed,
            })?;
        }
        self.controls.push(params);
        Ok(self.controls.len() - 1)
    }
}

/// What sends without an end over a path, and from when until before when [ns].
struct Endless {
    path: usize,
    from: u64,
    until: u64,
}

/// What has no end, such as a greedy connection, would go on for ever at one instant over a round trip of no time: refuses a
/// run where that happens.
fn takes_time(scenario: &Scenario) -> Result<(), SimError> {
    let end = scenario.end.map_or(u64::MAX, |end| end.0.saturating_add(1)); // that instant is the run's
    let endless = |workload: &Workload| match workload {
        Workload::Greedy => true,
        Workload::Web(web) => web.think.0 == 0,
        _ => false,
    };
    let flows = scenario.flows.iter().filter(|flow| endless(&flow.workload)).flat_map(|flow| {
        let until = flow.stop.map_or(end, |stop| stop.0.min(end));
        flow.paths.iter().map(move |&path| Endless { path, from: flow.start.0, until })
    });
    let senders: Vec<Endless> = flows.chain(traffic(scenario, end)).collect();
    all_take_time(scenario, &senders, 0, &scenario.changes)
}

/// The same of a network that stands, where the traffic goes on beyond `end`: from `now` on, with `changes` to come.
pub(crate) fn stands(scenario: &Scenario, now: u64, changes: &[Change]) -> Result<(), SimError> {
    all_take_time(scenario, &traffic(scenario, u64::MAX).collect::<Vec<_>>(), now, changes)
}

fn traffic(scenario: &Scenario, end: u64) -> impl Iterator<Item = Endless> + '_ {
    scenario.traffic.iter().filter_map(move |traffic| {
        let path = match &traffic.source {
            Source::Tcp { path, .. } => Some(*path),
            Source::Web { path, web, .. } => (web.think.0 == 0).then_some(*path),
            Source::Virtual { .. } => None,
        }?;
        Some(Endless { path, from: traffic.start.0, until: traffic.stop.map_or(end, |stop| stop.0.min(end)) })
    })
}

fn all_take_time(scenario: &Scenario, senders: &[Endless], now: u64, changes: &[Change]) -> Result<(), SimError> {
    let timed = |params: &LinkParams| params.mean_rate().is_some() || params.delay.0 > 0;
    let mut links: Vec<_> = scenario.links.iter().map(|link| [timed(&link.ab), timed(&link.ba)]).collect();
    let mut since = now;
    for when in 0..=changes.len() {
        if let Some(change) = when.checked_sub(1).map(|before| &changes[before]) {
            since = change.at.0;
            if let Changed::Link { link, direction, params, .. } = &change.what {
                links[*link][usize::from(*direction == Direction::Ba)] = timed(params);
            }
        }
        // changes of one instant hold together: no time lies between
        let next = changes.get(when).map_or(u64::MAX, |change| change.at.0);
        for sender in senders.iter().filter(|sender| since.max(sender.from) < next.min(sender.until)) {
            let path = &scenario.paths[sender.path];
            if !path.hops.iter().any(|hop| links[hop.link].contains(&true)) {
                return Err(SimError::Refused {
                    key: format!("path.{}.links", path.name),
                    problem: "a round trip over it takes no time, and something sends over it without an end".into(),
                    allowed: "a path with a rate or a delay on some link, at every time".into(),
                });
            }
        }
    }
    Ok(())
}

/// Parameters are whole numbers in their own units, or texts as [`parse_value`] reads them.
fn set(params: &mut Params, name: &str, value: &Value) -> Result<(), (String, String)> {
    let whole = "a whole number".to_string();
    let number = match value {
        Value::Bool(on) => u64::from(*on),
        Value::Integer(n) => u64::try_from(*n).map_err(|_| (format!("{n} is negative"), whole))?,
        Value::Float(x) => return Err((format!("{x} is not a whole number"), whole)),
        Value::Text(text) => parse_value(name, text).map_err(|reason| (reason, whole))?,
    };
    params.set(name, number).map_err(|error| match error {
        CongestionError::UnknownParameter { name, allowed, .. } => (format!("there is no parameter `{name}`"), allowed),
        CongestionError::OutOfRange { value, least, most, .. } => {
            (format!("{value} is out of range"), format!("{least} to {most}"))
        }
        other => (other.to_string(), String::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a link with these `ends`, and of what sends over it.
    fn refused(ends: &str, more: &str) -> Option<String> {
        let text = format!(
            "end = \"9s\"\n[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n{ends}\n[[path]]\nname = \"p\"\nlinks = [\"wan\"]\n{more}"
        );
        Setup::new(&Scenario::parse(&text, &[]).unwrap()).err().map(|error| error.to_string())
    }

    #[test]
    fn nothing_endless_goes_over_a_round_trip_of_no_time() {
        let greedy = "[[flow]]\nname = \"f\"\npaths = [\"p\"]\ncontrol = \"reno\"\n";
        let change =
            |at: &str, delay: &str| format!("[[change]]\nat = \"{at}\"\nlink = \"wan\"\ndelay = \"{delay}\"\n");
        let web = |think: &str| {
            format!(
                "[[traffic]]\nname = \"w\"\npath = \"p\"\nkind = \"web\"\ncontrol = \"reno\"\nthink = \"{think}\"\n"
            )
        };
        let tcp = "[[traffic]]\nname = \"t\"\npath = \"p\"\nkind = \"tcp\"\ncontrol = \"reno\"\n";
        for more in [greedy, tcp, &web("0s")] {
            let problem = refused("", more).expect("it takes no time");
            assert!(problem.starts_with("path.p.links: ") && problem.contains("without an end"), "{problem}");
            assert_eq!(refused("delay = { ab = \"0ms\", ba = \"1ms\" }", more), None);
        }
        assert_eq!(refused("", &web("1ms")), None);
        assert_eq!(refused("", ""), None);

        let later = greedy.to_owned() + &change("2s", "0ms");
        assert!(refused("delay = \"1ms\"", &later).is_some(), "it takes no time from 2 s on");
        assert_eq!(refused("rate = \"1Mbit\"\ndelay = \"1ms\"", &later), None);
        let one = "[[change]]\nat = \"2s\"\nlink = \"wan\"\n";
        let both = format!("{later}{one}direction = \"ab\"\nrate = \"1Mbit\"\n");
        assert_eq!(refused("delay = \"1ms\"", &both), None, "changes of one instant hold together");
    }

    #[test]
    fn a_change_counts_while_something_endless_sends() {
        let sends = |of: &str, when: &str, at: &str| {
            let greedy = format!("[[{of}]]\nname = \"f\"\ncontrol = \"reno\"\n{when}\n");
            refused("delay = \"1ms\"", &format!("{greedy}[[change]]\nat = \"{at}\"\nlink = \"wan\"\ndelay = \"0ms\"\n"))
        };
        for of in ["flow", "traffic"] {
            let path = if of == "flow" { "paths = [\"p\"]" } else { "kind = \"tcp\"\npath = \"p\"" };
            for (when, at, counts) in [
                ("stop = \"5s\"", "4s", true),
                ("stop = \"5s\"", "5s", false),
                ("stop = \"5s\"", "5001ms", false),
                ("", "9s", true),
                ("", "9001ms", false), // it ends at 9 s
                ("start = \"8s\"", "7s", true),
            ] {
                assert_eq!(sends(of, &format!("{path}\n{when}"), at).is_some(), counts, "{of} {when}, from {at} on");
            }
            let over = format!(
                "[[{of}]]\nname = \"f\"\ncontrol = \"reno\"\n{path}\nstart = \"6s\"\n\
                 [[change]]\nat = \"2s\"\nlink = \"wan\"\ndelay = \"0ms\"\n\
                 [[change]]\nat = \"6s\"\nlink = \"wan\"\ndelay = \"1ms\"\n"
            );
            assert_eq!(refused("delay = \"1ms\"", &over), None, "it takes time again when {of} starts");
        }
    }
}
