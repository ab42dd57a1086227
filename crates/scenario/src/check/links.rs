//! `[[link]]`: values per direction, and a graph in which everything can be reached.

use std::collections::BTreeSet;

use pathcast_base::{Bytes, Nanos};
use pathcast_link::{Aggregation, Bucket, Jitter, Params, Policer, Reorder};

use super::params;
use super::place::{self, Spot};
use super::switches;
use crate::error::Problem;
use crate::forms::{Each, LossForm, QueueForm, RateForm};
use crate::model::{Direction, Link, Switch};
use crate::raw;
use crate::trace::Traces;

pub(super) fn links(
    spot: &Spot,
    raw: &[raw::Link],
    switches: &[Switch],
    traces: &Traces,
) -> Result<Vec<Link>, Problem> {
    if raw.is_empty() {
        return Err(spot.refuse("there is no [[link]]").allowed("at least one"));
    }
    let mut links = Vec::new();
    for (i, raw) in raw.iter().enumerate() {
        links.push(link(&spot.index(i), raw, switches, traces)?);
    }
    place::distinct(spot, "link", &links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>())?;
    switches::apart(spot, switches, &links)?;
    connected(spot, &links)?;
    Ok(links)
}

fn link(spot: &Spot, raw: &raw::Link, switches: &[Switch], traces: &Traces) -> Result<Link, Problem> {
    let name = place::name(&spot.key("name"), &raw.name)?;
    let (a, a_port) = switches::end(&spot.key("a"), &raw.a, switches)?;
    let (b, b_port) = switches::end(&spot.key("b"), &raw.b, switches)?;
    if a == b {
        return Err(spot.key("b").refuse("both ends are the same node").allowed(format!("any node but `{a}`")));
    }
    let mut link = Link { name, a, b, a_port, b_port, ab: Params::default(), ba: Params::default() };
    let values = Values {
        traces,
        rate: &raw.rate,
        aggregation: &raw.aggregation,
        delay: &raw.delay,
        queue: &raw.queue,
        policer: &raw.policer,
        loss: &raw.loss,
        overhead: &raw.overhead,
        jitter: &raw.jitter,
        reorder: &raw.reorder,
        bucket: &raw.bucket,
        chunk: &raw.chunk,
    };
    for direction in Direction::BOTH {
        values.apply(spot, direction, link.params_mut(direction))?;
    }
    Ok(link)
}

/// The values of a link as a `[[link]]` or a `[[change]]` gives them.
pub(super) struct Values<'a> {
    pub traces: &'a Traces,
    pub rate: &'a Option<Each<RateForm>>,
    pub aggregation: &'a Option<Each<Aggregation>>,
    pub delay: &'a Option<Each<Nanos>>,
    pub queue: &'a Option<Each<QueueForm>>,
    pub policer: &'a Option<Each<Policer>>,
    pub loss: &'a Option<Each<LossForm>>,
    pub overhead: &'a Option<Each<Bytes>>,
    pub jitter: &'a Option<Each<Jitter>>,
    pub reorder: &'a Option<Each<Reorder>>,
    pub bucket: &'a Option<Each<Bucket>>,
    pub chunk: &'a Option<Each<Nanos>>,
}

impl Values<'_> {
    /// Puts the values for `direction` over `params` and checks the result. Whether anything was given.
    pub fn apply(&self, spot: &Spot, direction: Direction, params: &mut Params) -> Result<bool, Problem> {
        fn give<T>(each: &Option<Each<T>>, direction: Direction, put: impl FnOnce(&T)) -> bool {
            each.as_ref().and_then(|each| each.get(direction)).map(put).is_some()
        }
        let mut given = self.rate(spot, direction, params)?;
        given |= give(self.aggregation, direction, |aggregation| params.aggregation = Some(*aggregation));
        given |= give(self.delay, direction, |delay| params.delay = *delay);
        given |= give(self.queue, direction, |queue| params.queue = queue.0.clone());
        given |= give(self.loss, direction, |loss| params.loss = loss.0);
        given |= give(self.policer, direction, |policer| params.policer = Some(*policer));
        given |= give(self.overhead, direction, |overhead| params.overhead = *overhead);
        given |= give(self.jitter, direction, |jitter| params.jitter = Some(*jitter));
        given |= give(self.reorder, direction, |reorder| params.reorder = Some(*reorder));
        given |= give(self.bucket, direction, |bucket| params.bucket = Some(*bucket));
        given |= give(self.chunk, direction, |chunk| params.chunk = *chunk);
        params::link(params, |dotted| {
            let mut at = spot.clone();
            for (i, key) in dotted.split('.').enumerate() {
                at = at.key(key);
                if i == 0 && self.is_split(key) {
                    at = at.key(direction.name());
                }
            }
            at
        })?;
        Ok(given)
    }

    /// A rate takes the place of a trace, and a trace that of a rate.
    fn rate(&self, spot: &Spot, direction: Direction, params: &mut Params) -> Result<bool, Problem> {
        let Some(rate) = self.rate.as_ref().and_then(|each| each.get(direction)) else { return Ok(false) };
        (params.rate, params.trace) = match rate {
            RateForm::Fixed(rate) => (Some(*rate), None),
            RateForm::Trace(form) => {
                let spot = spot.key("rate");
                let spot = if self.is_split("rate") { spot.key(direction.name()) } else { spot };
                params::time(&spot.key("offset"), form.offset.unwrap_or_default())?;
                let trace = self.traces.load(form);
                (None, Some(trace.map_err(|bad| spot.key("trace").refuse(bad.text).allowed(bad.allowed))?))
            }
        };
        Ok(true)
    }

    /// Whether a key has a value per direction.
    pub fn is_split(&self, key: &str) -> bool {
        self.form(key).0
    }

    /// Whether there is a value of a key for `direction`.
    pub fn names(&self, key: &str, direction: Direction) -> bool {
        let (_, [ab, ba]) = self.form(key);
        if direction == Direction::Ab { ab } else { ba }
    }

    fn form(&self, key: &str) -> (bool, [bool; 2]) {
        fn form<T>(each: &Option<Each<T>>) -> (bool, [bool; 2]) {
            let names = |direction| each.as_ref().is_some_and(|each| each.get(direction).is_some());
            (matches!(each, Some(Each::Split(_))), Direction::BOTH.map(names))
        }
        match key {
            "rate" => form(self.rate),
            "aggregation" => form(self.aggregation),
            "delay" => form(self.delay),
            "queue" => form(self.queue),
            "policer" => form(self.policer),
            "loss" => form(self.loss),
            "overhead" => form(self.overhead),
            "jitter" => form(self.jitter),
            "reorder" => form(self.reorder),
            "bucket" => form(self.bucket),
            _ => form(self.chunk),
        }
    }
}

/// Both hosts exist and every node can be reached from the client.
fn connected(spot: &Spot, links: &[Link]) -> Result<(), Problem> {
    let nodes: BTreeSet<&str> = links.iter().flat_map(|link| [link.a.as_str(), link.b.as_str()]).collect();
    for host in ["client", "server"] {
        if !nodes.contains(host) {
            let text = format!("no link ends at the node `{host}`");
            return Err(spot.index(0).refuse(text).allowed("links from `client` to `server`"));
        }
    }
    let mut reached = BTreeSet::from(["client"]);
    loop {
        let before = reached.len();
        for link in links {
            if reached.contains(link.a.as_str()) || reached.contains(link.b.as_str()) {
                reached.extend([link.a.as_str(), link.b.as_str()]);
            }
        }
        if reached.len() == before {
            break;
        }
    }
    for (i, link) in links.iter().enumerate() {
        if !reached.contains(link.a.as_str()) {
            let names: Vec<&str> = reached.iter().copied().collect();
            let problem = spot.index(i).key("a").refuse(format!("`{}` cannot be reached from `client`", link.a));
            return Err(problem.choices(&link.a, &names).allowed(format!("a node reached: {}", names.join(", "))));
        }
    }
    Ok(())
}
