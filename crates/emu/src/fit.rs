//! What a scenario may have that an emulated network cannot do.

use pathcast_link::Queue;
use pathcast_scenario::{Direction, Scenario, Source};

use crate::error::EmuError;

/// Refuses what only the simulator can do.
///
/// # Errors
/// The first such traffic or queue, with what is allowed in its place.
pub(crate) fn fits(scenario: &Scenario) -> Result<(), EmuError> {
    traffic(scenario)?;
    queues(scenario)
}

fn traffic(scenario: &Scenario) -> Result<(), EmuError> {
    match scenario.traffic.iter().find(|t| !matches!(t.source, Source::Virtual { .. })) {
        None => Ok(()),
        Some(t) => Err(EmuError::Refused(format!(
            "traffic `{}` is made of TCP connections, which an emulated network does not start by itself; allowed \
             kinds here: constant, poisson, pareto-onoff",
            t.name
        ))),
    }
}

/// The links of an emulated network know a departure when a packet comes, and so cannot let flows take turns. A change
/// cannot make a queue fair, so the links as they begin tell all.
fn queues(scenario: &Scenario) -> Result<(), EmuError> {
    let is_fair =
        |direction: &Direction, link: usize| matches!(scenario.links[link].params(*direction).queue, Queue::Fair(_));
    let found = (0..scenario.links.len())
        .find_map(|link| Some((link, Direction::BOTH.into_iter().find(|direction| is_fair(direction, link))?)));
    match found {
        None => Ok(()),
        Some((link, direction)) => Err(EmuError::Refused(format!(
            "link `{}`: `queue` is of kind `fair` from {} to {}, which only the simulator has; allowed here: packets \
             (`50 packets`), bytes (`150KB`), or kind `red`",
            scenario.links[link].name,
            scenario.links[link].nodes(direction).0,
            scenario.links[link].nodes(direction).1
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;
    use pathcast_base::{Exit, Fault};

    fn text(queue: &str, more: &str) -> String {
        format!(
            "[[link]]\nname = \"near\"\na = \"client\"\nb = \"r\"\n[[link]]\nname = \"wan\"\na = \"r\"\nb = \"server\"\n\
             {queue}\n[[path]]\nname = \"path1\"\nlinks = [\"near\", \"wan\"]\n{more}"
        )
    }

    fn refusal(queue: &str, more: &str) -> Option<EmuError> {
        fits(&Scenario::parse(&text(queue, more), &[]).unwrap()).err()
    }

    #[test]
    fn a_fair_queue_is_refused_in_either_direction() {
        for queue in ["{ kind = \"fair\", packets = 9 }", "{ ab = \"9KB\", ba = { kind = \"fair\", packets = 9 } }"] {
            let error = refusal(&format!("queue = {queue}"), "").unwrap();
            assert_eq!((error.exit(), error.code()), (Exit::Usage, "refused"));
            let shown = error.to_string();
            assert!(shown.starts_with("link `wan`: `queue` is of kind `fair` from "), "{shown}");
            assert!(shown.contains("allowed here: packets (`50 packets`), bytes (`150KB`), or kind `red`"), "{shown}");
        }
        let red = "queue = { ab = \"9KB\", ba = { kind = \"red\", min = 1, max = 2, limit = 3 } }";
        assert!(refusal(red, "").is_none());
    }

    /// Before anything is made, so that it needs no privilege.
    #[test]
    fn nothing_is_made_for_a_fair_queue() {
        let fair = ("link.near.queue".to_owned(), "{ kind = \"fair\", packets = 9 }".to_owned());
        let error = Network::up(&text("", ""), &[fair], "unmade").err().unwrap();
        assert_eq!((error.exit(), error.code()), (Exit::Usage, "refused"));
        assert!(error.to_string().contains("link `near`: `queue`"), "{error}");
    }

    #[test]
    fn real_connections_are_refused() {
        let error = refusal("", "[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n").unwrap();
        assert!(error.to_string().starts_with("traffic `traffic1` is made of TCP connections"), "{error}");
        let rate = "[[traffic]]\nkind = \"poisson\"\nlink = \"wan\"\ndirection = \"ab\"\nrate = \"1Mbit\"\n";
        assert!(refusal("", rate).is_none());
    }
}
