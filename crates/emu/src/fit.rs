//! What a scenario may have that an emulated network cannot do.

use pathcast_base::Rate;
use pathcast_link::Cross;
use pathcast_scenario::{Changed, Scenario, Source};

use crate::error::EmuError;

/// Packets of cross traffic in a second, over all links: a thread that draws more than it has time for comes to nothing
/// else, be it an order to end.
const MOST_CROSS: u64 = 2_000_000;

/// Refuses what only the simulator can do.
///
/// # Errors
/// The first such traffic, with what is allowed in its place.
pub(crate) fn fits(scenario: &Scenario) -> Result<(), EmuError> {
    match scenario.traffic.iter().find(|t| !matches!(t.source, Source::Virtual { .. })) {
        None => dense(scenario),
        Some(t) => Err(EmuError::Refused(format!(
            "traffic `{}` is made of TCP connections, which an emulated network does not start by itself; allowed \
             kinds here: constant, poisson, pareto-onoff",
            t.name
        ))),
    }
}

/// Refuses cross traffic that no machine could draw in time, from the beginning on or after a change.
fn dense(scenario: &Scenario) -> Result<(), EmuError> {
    let mut drawn = vec![0; scenario.traffic.len()];
    let begins = scenario.traffic.iter().enumerate().filter_map(|(index, traffic)| match &traffic.source {
        Source::Virtual { cross, .. } => Some((index, cross)),
        _ => None,
    });
    let changes = scenario.changes.iter().filter_map(|change| match &change.what {
        Changed::Traffic { traffic, cross } => Some((*traffic, cross)),
        Changed::Link { .. } => None,
    });
    for (index, cross) in begins.chain(changes) {
        let (key, rate, packet) = match cross {
            Cross::Constant { rate, packet } | Cross::Poisson { rate, packet } => ("rate", rate, packet),
            Cross::ParetoOnoff { peak, packet, .. } => ("peak", peak, packet),
        };
        drawn[index] = rate.0.div_ceil(packet.0 * 8);
        let all: u64 = drawn.iter().sum();
        if all > MOST_CROSS {
            let most = Rate((MOST_CROSS - (all - drawn[index]).min(MOST_CROSS)) * packet.0 * 8);
            let name = &scenario.traffic[index].name;
            return Err(EmuError::Refused(format!(
                "traffic `{name}`: `{key}` is {rate}; allowed in an emulated network: at most {most} for packets of \
                 {packet}, so that all cross traffic together is at most {MOST_CROSS} packets a second"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;
    use pathcast_base::{Exit, Fault};

    #[test]
    fn real_connections_are_refused() {
        let links = "[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n[[path]]\nname = \"path1\"\n\
                     links = [\"wan\"]\n";
        let refusal = |more: &str| fits(&Scenario::parse(&format!("{links}{more}"), &[]).unwrap()).err();
        let error = refusal("[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n").unwrap();
        assert_eq!((error.exit(), error.code()), (Exit::Usage, "refused"));
        assert!(error.to_string().starts_with("traffic `traffic1` is made of TCP connections"), "{error}");
        let rate = "[[traffic]]\nkind = \"poisson\"\nlink = \"wan\"\ndirection = \"ab\"\nrate = \"1Mbit\"\n";
        assert!(refusal(rate).is_none());
    }

    #[test]
    fn cross_traffic_that_is_too_dense_is_refused() {
        let refusal = |rest: &str| {
            let text = format!(
                "[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n[[path]]\nname = \"path1\"\n\
                 links = [\"wan\"]\n[[traffic]]\nname = \"x\"\nlink = \"wan\"\ndirection = \"ab\"\n\
                 packet = \"100B\"\n{rest}"
            );
            fits(&Scenario::parse(&text, &[]).unwrap()).err().map(|error| (error.to_string(), error.exit()))
        };
        assert_eq!(refusal("kind = \"constant\"\nrate = \"1600Mbit\"\n"), None);
        let onoff = "kind = \"pareto-onoff\"\nrate = \"1Mbit\"\non = \"10ms\"\nshape = 1.5\npeak = ";
        let second = "kind = \"poisson\"\nrate = \"1Gbit\"\n[[traffic]]\nname = \"y\"\nlink = \"wan\"\n\
                      direction = \"ba\"\npacket = \"1000B\"\nkind = \"constant\"\nrate = \"7Gbit\"\n";
        let later =
            "kind = \"constant\"\nrate = \"1Gbit\"\n[[change]]\nat = \"1s\"\ntraffic = \"x\"\npacket = \"1B\"\n";
        for (rest, says) in [
            ("kind = \"poisson\"\nrate = \"1601Mbit\"\n", "traffic `x`: `rate` is 1601Mbit; allowed"),
            (&format!("{onoff}\"2Gbit\"\n"), "`peak` is 2Gbit; allowed in an emulated network: at most 1600Mbit"),
            (second, "traffic `y`: `rate` is 7Gbit; allowed in an emulated network: at most 6Gbit for packets of 1KB"),
            (later, "`rate` is 1Gbit; allowed in an emulated network: at most 16Mbit for packets of 1B"),
        ] {
            let (text, exit) = refusal(rest).unwrap();
            assert_eq!(exit, Exit::Usage);
            assert!(text.contains(says), "{text}");
        }
    }

    /// Before anything is made, so that it needs no privilege.
    #[test]
    fn nothing_is_made_for_what_is_refused() {
        let text = "[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n[[path]]\nname = \"path1\"\nlinks = \
                    [\"wan\"]\n[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n";
        let error = Network::up(text, &[], "unmade").err().unwrap();
        assert_eq!((error.exit(), error.code()), (Exit::Usage, "refused"));
    }
}
