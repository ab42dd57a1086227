//! `[[traffic]]`: virtual packets on a link, or TCP connections and web clients on a path.

use pathcast_base::{Bytes, Nanos};
use pathcast_link::Cross;

use super::place::{self, Spot};
use super::{flows, params};
use crate::error::Problem;
use crate::host::End;
use crate::model::{Direction, Link, Path, Source, Traffic};
use crate::raw;
use crate::sets::traffic_name;

const PACKET: Bytes = Bytes(1500);
/// Of Pareto on and off times, as in most of the literature.
const ON_OFF_SHAPE: f64 = 1.5;
const MAX_CONNECTIONS: u64 = 10_000;

pub(super) fn traffic(
    spot: &Spot,
    raw: &[raw::Traffic],
    links: &[Link],
    paths: &[Path],
) -> Result<Vec<Traffic>, Problem> {
    let mut all = Vec::new();
    for (i, raw) in raw.iter().enumerate() {
        all.push(one(&spot.index(i), i, raw, links, paths)?);
    }
    place::distinct(spot, "traffic", &all.iter().map(|traffic| traffic.name.as_str()).collect::<Vec<_>>())?;
    Ok(all)
}

fn one(spot: &Spot, i: usize, raw: &raw::Traffic, links: &[Link], paths: &[Path]) -> Result<Traffic, Problem> {
    let finish = |name: &Option<String>, start: Option<Nanos>, stop: Option<Nanos>, source: Source| {
        let name = match name {
            Some(name) => place::name(&spot.key("name"), name)?,
            None => traffic_name(i),
        };
        let start = params::span(spot, start, stop)?;
        Ok(Traffic { name, start, stop, source })
    };
    let virtual_on = |link: &str, direction: Direction, cross: Cross| {
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let link = place::find(&spot.key("link"), "link", link, &names)?;
        params::cross(&cross, spot)?;
        Ok(Source::Virtual { link, direction, cross })
    };
    let on_path = |path: &str| {
        let names: Vec<&str> = paths.iter().map(|path| path.name.as_str()).collect();
        place::find(&spot.key("path"), "path", path, &names)
    };
    let count = |key: &str, n: Option<u32>| {
        let n = n.unwrap_or(1);
        params::within(&spot.key(key), n.into(), 1, MAX_CONNECTIONS, "").map(|()| n)
    };
    match raw {
        raw::Traffic::Constant(steady) | raw::Traffic::Poisson(steady) => {
            let (rate, packet) = (steady.rate, steady.packet.unwrap_or(PACKET));
            let cross = match raw {
                raw::Traffic::Constant(_) => Cross::Constant { rate, packet },
                _ => Cross::Poisson { rate, packet },
            };
            let source = virtual_on(&steady.link, steady.direction, cross)?;
            finish(&steady.name, steady.start, steady.stop, source)
        }
        raw::Traffic::ParetoOnoff(bursts) => {
            let raw::OnOff { rate, peak, on, .. } = *bursts;
            let shape = bursts.shape.unwrap_or(ON_OFF_SHAPE);
            let packet = bursts.packet.unwrap_or(PACKET);
            let source =
                virtual_on(&bursts.link, bursts.direction, Cross::ParetoOnoff { rate, peak, on, shape, packet })?;
            finish(&bursts.name, bursts.start, bursts.stop, source)
        }
        raw::Traffic::Tcp(greedy) => {
            let stagger = greedy.stagger.unwrap_or_default();
            params::time(&spot.key("stagger"), stagger)?;
            let source = Source::Tcp {
                path: on_path(&greedy.path)?,
                to: greedy.to.unwrap_or(End::Server),
                flows: count("flows", greedy.flows)?,
                stagger,
                control: flows::control(spot, &greedy.control)?,
            };
            finish(&greedy.name, greedy.start, greedy.stop, source)
        }
        raw::Traffic::Web(pages) => {
            let source = Source::Web {
                path: on_path(&pages.path)?,
                to: pages.to.unwrap_or(End::Server),
                clients: count("clients", pages.clients)?,
                control: flows::control(spot, &pages.control)?,
                web: flows::web(spot, pages.page, pages.shape, pages.think)?,
            };
            finish(&pages.name, pages.start, pages.stop, source)
        }
    }
}
