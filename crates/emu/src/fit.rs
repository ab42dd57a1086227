//! What a scenario may have that an emulated network cannot do.

use pathcast_scenario::{Scenario, Source};

use crate::error::EmuError;

/// Refuses what only the simulator can do.
///
/// # Errors
/// The first such traffic, with what is allowed in its place.
pub(crate) fn fits(scenario: &Scenario) -> Result<(), EmuError> {
    match scenario.traffic.iter().find(|t| !matches!(t.source, Source::Virtual { .. })) {
        None => Ok(()),
        Some(t) => Err(EmuError::Refused(format!(
            "traffic `{}` is made of TCP connections, which an emulated network does not start by itself; allowed \
             kinds here: constant, poisson, pareto-onoff",
            t.name
        ))),
    }
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

    /// Before anything is made, so that it needs no privilege.
    #[test]
    fn nothing_is_made_for_what_is_refused() {
        let text = "[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n[[path]]\nname = \"path1\"\nlinks = \
                    [\"wan\"]\n[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n";
        let error = Network::up(text, &[], "unmade").err().unwrap();
        assert_eq!((error.exit(), error.code()), (Exit::Usage, "refused"));
    }
}
