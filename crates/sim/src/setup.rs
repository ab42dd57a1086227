//! The controllers that a scenario names, with its values for their parameters.

use pathcast_congestion::{CongestionError, Params, controller, controllers, parse_value};
use pathcast_link::Params as LinkParams;
use pathcast_scenario::{Changed, Direction, Preset, Scenario, Source, Value, Workload};

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

/// What has no end, such as a greedy connection, would go on for ever at one instant over a round trip of no time.
fn takes_time(scenario: &Scenario) -> Result<(), SimError> {
    let endless = |workload: &Workload| match workload {
        Workload::Greedy => true,
        Workload::Web(web) => web.think.0 == 0,
        _ => false,
    };
    let flows =
        scenario.flows.iter().filter(|flow| endless(&flow.workload)).flat_map(|flow| flow.paths.iter().copied());
    let traffic = scenario.traffic.iter().filter_map(|traffic| match &traffic.source {
        Source::Tcp { path, .. } => Some(*path),
        Source::Web { path, web, .. } => (web.think.0 == 0).then_some(*path),
        Source::Virtual { .. } => None,
    });
    let paths: Vec<usize> = flows.chain(traffic).collect();
    let timed = |params: &LinkParams| params.mean_rate().is_some() || params.delay.0 > 0;
    let mut links: Vec<_> = scenario.links.iter().map(|link| [timed(&link.ab), timed(&link.ba)]).collect();
    for when in 0..=scenario.changes.len() {
        if let Some(Changed::Link { link, direction, params, .. }) =
            when.checked_sub(1).map(|change| &scenario.changes[change].what)
        {
            links[*link][usize::from(*direction == Direction::Ba)] = timed(params);
        }
        // changes of one instant hold together
        let at = |change: usize| scenario.changes.get(change).map(|change| change.at);
        if when > 0 && at(when - 1) == at(when) {
            continue;
        }
        for &path in &paths {
            let path = &scenario.paths[path];
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
}
