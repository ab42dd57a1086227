//! The controllers that a scenario names, with its values for their parameters.

use pathcast_congestion::{CongestionError, Params, controller, controllers, parse_value};
use pathcast_scenario::{Direction, Hop, Preset, Scenario, Source, Value, Workload};

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
        for flow in scenario.flows.iter().filter(|flow| flow.workload == Workload::Greedy) {
            for &path in &flow.paths {
                takes_time(scenario, path)?;
            }
        }
        for traffic in &scenario.traffic {
            if let Source::Tcp { path, .. } = traffic.source {
                takes_time(scenario, path)?;
            }
        }
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

/// A greedy connection over a round trip of no time would send for ever at one instant.
fn takes_time(scenario: &Scenario, path: usize) -> Result<(), SimError> {
    let path = &scenario.paths[path];
    let timed = |hop: &Hop| {
        let params = [Direction::Ab, Direction::Ba].map(|direction| scenario.links[hop.link].params(direction));
        params.iter().any(|params| params.mean_rate().is_some() || params.delay.0 > 0)
    };
    if path.hops.iter().any(timed) {
        return Ok(());
    }
    Err(SimError::Refused {
        key: format!("path.{}.links", path.name),
        problem: "a round trip over it takes no time, and something sends over it without an end".into(),
        allowed: "a path with a rate or a delay on some link".into(),
    })
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
