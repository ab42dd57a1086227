//! `[[change]]`: in order of time, each on top of those before it.

use pathcast_base::{Bytes, Rate};
use pathcast_link::Cross;

use super::links::Values;
use super::params;
use super::place::{self, Spot};
use crate::error::Problem;
use crate::forms::{Each, RateForm};
use crate::model::{Change, Changed, Direction, Link, Source, Traffic};
use crate::raw;
use crate::trace::Traces;

const OF_LINKS: [&str; 10] =
    ["rate", "delay", "queue", "policer", "loss", "overhead", "jitter", "reorder", "aggregation", "bucket"];
const OF_TRAFFIC: [&str; 5] = ["rate", "packet", "peak", "on", "shape"];

pub(super) fn changes(
    spot: &Spot,
    raw: &[raw::Change],
    links: &[Link],
    traffic: &[Traffic],
    traces: &Traces,
) -> Result<Vec<Change>, Problem> {
    let (mut links, mut traffic) = (links.to_vec(), traffic.to_vec());
    let mut order: Vec<usize> = (0..raw.len()).collect();
    // stable: of two changes at the same time the later in the file comes last
    order.sort_by_key(|&i| raw[i].at);
    let mut changes = Vec::new();
    for i in order {
        let (spot, raw) = (spot.index(i), &raw[i]);
        params::time(&spot.key("at"), raw.at)?;
        match (&raw.link, &raw.traffic) {
            (Some(name), None) => change_link(&spot, raw, name, traces, &mut links, &mut changes)?,
            (None, Some(name)) => changes.push(change_traffic(&spot, raw, name, &mut traffic)?),
            (Some(_), Some(_)) => {
                return Err(spot.key("traffic").refuse("a change is of a link or of traffic").allowed("one of them"));
            }
            (None, None) => return Err(spot.refuse("nothing to change").allowed("`link` or `traffic`, with a name")),
        }
    }
    Ok(changes)
}

fn given(raw: &raw::Change) -> Vec<&'static str> {
    let keys = [
        ("direction", raw.direction.is_some()),
        ("rate", raw.rate.is_some()),
        ("aggregation", raw.aggregation.is_some()),
        ("delay", raw.delay.is_some()),
        ("queue", raw.queue.is_some()),
        ("policer", raw.policer.is_some()),
        ("loss", raw.loss.is_some()),
        ("overhead", raw.overhead.is_some()),
        ("jitter", raw.jitter.is_some()),
        ("reorder", raw.reorder.is_some()),
        ("bucket", raw.bucket.is_some()),
        ("packet", raw.packet.is_some()),
        ("peak", raw.peak.is_some()),
        ("on", raw.on.is_some()),
        ("shape", raw.shape.is_some()),
    ];
    keys.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect()
}

fn only(spot: &Spot, raw: &raw::Change, what: &str, allowed: &[&str]) -> Result<(), Problem> {
    let given = given(raw);
    match given.iter().find(|key| !allowed.contains(key) && **key != "direction") {
        Some(key) => Err(spot.key(key).refuse(format!("{what} has no `{key}`")).allowed(allowed.join(", "))),
        None if given.iter().all(|key| *key == "direction") => {
            Err(spot.refuse("the change has no new value").allowed(allowed.join(", ")))
        }
        None => Ok(()),
    }
}

fn change_link(
    spot: &Spot,
    raw: &raw::Change,
    name: &str,
    traces: &Traces,
    links: &mut [Link],
    changes: &mut Vec<Change>,
) -> Result<(), Problem> {
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let link = place::find(&spot.key("link"), "link", name, &names)?;
    only(spot, raw, "a link", &OF_LINKS)?;
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
        chunk: &None,
    };
    if let Some(key) = OF_LINKS.iter().find(|key| raw.direction.is_some() && values.is_split(key)) {
        let problem = spot.key(key).refuse("a value per direction beside `direction`");
        return Err(problem.allowed("one value, or no `direction`"));
    }
    for direction in Direction::BOTH {
        if raw.direction.is_some_and(|only| only != direction) {
            continue;
        }
        let params = links[link].params_mut(direction);
        let old = params.queue.clone();
        if values.apply(spot, direction, params)? {
            if let Err(allowed) = old.may_become(&params.queue) {
                return Err(other_queue(spot, values.is_split("queue").then_some(direction), allowed));
            }
            let keys = OF_LINKS.into_iter().filter(|key| values.names(key, direction)).map(str::to_owned).collect();
            let what = Changed::Link { link, direction, params: params.clone(), keys };
            changes.push(Change { at: raw.at, what });
        }
    }
    Ok(())
}

/// What waits cannot move between kinds of queues. `direction`: the queue is given per direction.
fn other_queue(spot: &Spot, direction: Option<Direction>, allowed: String) -> Problem {
    let spot = spot.key("queue");
    let spot = direction.map_or(spot.clone(), |direction| spot.key(direction.name()));
    spot.refuse("no queue becomes one of another kind").allowed(allowed)
}

fn change_traffic(spot: &Spot, raw: &raw::Change, name: &str, traffic: &mut [Traffic]) -> Result<Change, Problem> {
    let names: Vec<&str> = traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    let index = place::find(&spot.key("traffic"), "traffic", name, &names)?;
    let Source::Virtual { cross, .. } = &mut traffic[index].source else {
        let problem = spot.key("traffic").refuse("only virtual traffic can change");
        return Err(problem.allowed("traffic of the kinds constant, poisson, pareto-onoff"));
    };
    let keys = match cross {
        Cross::ParetoOnoff { .. } => &OF_TRAFFIC[..],
        _ => &OF_TRAFFIC[..2],
    };
    only(spot, raw, "this traffic", keys)?;
    if raw.direction.is_some() {
        let problem = spot.key("direction").refuse("traffic keeps its direction");
        return Err(problem.allowed("no `direction` with `traffic`"));
    }
    let rate = match &raw.rate {
        Some(Each::Same(RateForm::Fixed(rate))) => Some(*rate),
        Some(Each::Same(RateForm::Trace(_))) => {
            return Err(spot.key("rate").refuse("only a link follows a trace").allowed("a rate, such as \"5Mbit\""));
        }
        Some(Each::Split(_)) => {
            return Err(spot.key("rate").refuse("traffic has one direction").allowed("one rate, such as \"5Mbit\""));
        }
        None => None,
    };
    update(cross, rate, raw.packet, raw);
    params::cross(cross, spot)?;
    Ok(Change { at: raw.at, what: Changed::Traffic { traffic: index, cross: cross.clone() } })
}

fn update(cross: &mut Cross, new_rate: Option<Rate>, new_packet: Option<Bytes>, raw: &raw::Change) {
    let (Cross::Constant { rate, packet } | Cross::Poisson { rate, packet } | Cross::ParetoOnoff { rate, packet, .. }) =
        cross;
    *rate = new_rate.unwrap_or(*rate);
    *packet = new_packet.unwrap_or(*packet);
    if let Cross::ParetoOnoff { peak, on, shape, .. } = cross {
        *peak = raw.peak.unwrap_or(*peak);
        *on = raw.on.unwrap_or(*on);
        *shape = raw.shape.unwrap_or(*shape);
    }
}
