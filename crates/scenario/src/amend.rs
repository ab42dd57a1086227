//! A textual change of a link in a network that stands: `link set wan rate=2Mbit`. The new values are laid over the text
//! that the network was made from, as `--set` lays them, so that they are read and checked as if they stood there.

use pathcast_base::{Exit, Fault};
use pathcast_link::{ParamError, Params};

use crate::error::ScenarioError;
use crate::model::{Change, Changed, Direction, Link, Scenario};
use crate::template::Template;
use crate::tree::Node;

/// Keys of a link that may change while it runs.
pub const LINK_KEYS: [&str; 11] =
    ["rate", "delay", "queue", "policer", "loss", "overhead", "jitter", "reorder", "aggregation", "bucket", "chunk"];

/// Why a change of a link was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmendError {
    /// A name that is not in this network, or no key of a link.
    #[error("{key} `{value}` is not in this network; allowed: {allowed}")]
    Unknown {
        /// What was named.
        key: &'static str,
        /// The name given.
        value: String,
        /// The names that exist.
        allowed: String,
    },
    /// A value that the scenario's checks refuse.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Values that make no link together with those that it has by now.
    #[error("link {link}: {source}")]
    Together {
        /// The link.
        link: String,
        /// What is wrong.
        source: ParamError,
    },
    /// Values per direction, and none for the one that changes.
    #[error(
        "`{key}` is `{value}`, which says nothing of direction {direction}; allowed: one value, or one for `{direction}`"
    )]
    Elsewhere {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The direction that changes.
        direction: &'static str,
    },
    /// What waits cannot move between kinds of queues.
    #[error("link {link}: `queue` cannot become one of another kind; allowed: {allowed}")]
    OtherQueue {
        /// The link.
        link: String,
        /// What it may become.
        allowed: String,
    },
}

impl Fault for AmendError {
    fn code(&self) -> &'static str {
        match self {
            AmendError::Unknown { .. } => "unknown",
            AmendError::Scenario(error) => error.code(),
            AmendError::Together { source, .. } => source.code(),
            AmendError::Elsewhere { .. } | AmendError::OtherQueue { .. } => "refused",
        }
    }
    fn hint(&self) -> Option<String> {
        if let AmendError::Scenario(error) = self { error.hint() } else { None }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// A change of one link whose names and values have been checked, to be laid over what the link has by now.
#[derive(Clone, Debug)]
pub struct Amendment {
    link: usize,
    /// Each with the directions of its values.
    keys: Vec<(String, Vec<Direction>)>,
    directions: Vec<Direction>,
    sets: Vec<(String, String)>,
    wanted: Scenario,
}

impl Amendment {
    /// Reads `changes` of `link` as if they stood in the scenario of `template` with `sets` over it, what was asked before
    /// included; without `direction` they are of both, and a value may be given per direction. A trace that they name is
    /// read again, no other.
    ///
    /// # Errors
    /// An unknown link or key with those that exist, or a value that the scenario's checks refuse.
    pub fn read(
        template: &Template,
        sets: &[(String, String)],
        link: &str,
        direction: Option<Direction>,
        changes: &[(String, String)],
    ) -> Result<Amendment, AmendError> {
        let scenario = template.scenario(sets)?;
        let Some(index) = scenario.link(link) else {
            let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
            return Err(AmendError::Unknown { key: "link", value: link.into(), allowed: names.join(", ") });
        };
        if let Some((key, _)) = changes.iter().find(|(key, _)| !LINK_KEYS.contains(&key.as_str())) {
            return Err(AmendError::Unknown { key: "link key", value: key.clone(), allowed: LINK_KEYS.join(", ") });
        }
        let mut new = Vec::new();
        let mut keys = Vec::new();
        for (key, value) in changes {
            let dotted = format!("link.{link}.{key}");
            let parts = Node::parts_of_set(value);
            let mut named = Vec::new();
            for of in Direction::BOTH.into_iter().filter(|of| direction.is_none_or(|only| only == *of)) {
                let part = parts.as_ref().map(|parts| parts.iter().find(|(end, _)| end == of.name()));
                match (part, direction) {
                    (Some(Some((_, part))), _) => new.push((format!("{dotted}.{}", of.name()), part.clone())),
                    (None, Some(_)) => new.push((format!("{dotted}.{}", of.name()), value.clone())),
                    (None, None) => {} // one for both, below
                    (Some(None), Some(only)) => {
                        let (key, value, direction) = (key.clone(), value.clone(), only.name());
                        return Err(AmendError::Elsewhere { key, value, direction });
                    }
                    (Some(None), None) => continue,
                }
                named.push(of);
            }
            if parts.is_none() && direction.is_none() {
                new.push((dotted, value.clone()));
            }
            keys.push((key.clone(), named));
        }
        let all: Vec<_> = sets.iter().chain(&new).cloned().collect();
        let mut wanted = template.scenario(&all)?;
        if let Some((_, named)) = keys.iter().find(|(key, _)| key == "rate") {
            let traces = named.iter().filter_map(|of| wanted.links[index].params(*of).trace.as_ref());
            wanted = template.again(traces, &all)?;
        }
        Ok(Amendment {
            link: index,
            keys,
            directions: direction.map_or(Direction::BOTH.into(), |direction| vec![direction]),
            sets: new,
            wanted,
        })
    }

    /// The change in the form of `sets`, for a network that is made anew.
    pub fn sets(&self) -> &[(String, String)] {
        &self.sets
    }

    /// Index of the link.
    pub fn link(&self) -> usize {
        self.link
    }

    /// The scenario with the change in it, for what only a world itself can refuse.
    pub fn wanted(&self) -> &Scenario {
        &self.wanted
    }

    /// The link's new parameters by direction: the changed keys over what it has `now`, in the directions that have values.
    ///
    /// # Errors
    /// Values that make no link with the others, or another kind of queue that what waits cannot move to.
    pub fn over(&self, now: &Link) -> Result<Vec<(Direction, Params)>, AmendError> {
        let new = |direction: &Direction| {
            let mut params = now.params(*direction).clone();
            let old = params.queue.clone();
            for key in self.of(*direction) {
                copy(key, self.wanted.links[self.link].params(*direction), &mut params);
            }
            let link = || now.name.clone();
            if let Err(allowed) = old.may_become(&params.queue) {
                return Err(AmendError::OtherQueue { link: link(), allowed });
            }
            params.check().map_err(|source| AmendError::Together { link: link(), source })?;
            Ok((*direction, params))
        };
        self.directions.iter().filter(|direction| self.of(**direction).next().is_some()).map(new).collect()
    }

    /// Lays the change over those that the scenario itself makes `later`, which hold whole parameters: what they do not name
    /// stays as it is by now. `new`: of [`Amendment::over`].
    ///
    /// # Errors
    /// Values that make no link together with those of a later change; nothing is changed then.
    pub fn over_later(&self, new: &[(Direction, Params)], later: &mut [Change]) -> Result<(), AmendError> {
        let mut laid = later.to_vec();
        for (direction, new) in new {
            let mut keys: Vec<&str> = self.of(*direction).collect();
            for change in &mut laid {
                let Changed::Link { link, direction: of, params, keys: named } = &mut change.what else { continue };
                if (*link, *of) != (self.link, *direction) {
                    continue;
                }
                keys.retain(|key| !named.iter().any(|named| named == key));
                keys.iter().for_each(|key| copy(key, new, params));
                let link = || self.wanted.links[self.link].name.clone();
                params.check().map_err(|source| AmendError::Together { link: link(), source })?;
            }
        }
        later.clone_from_slice(&laid);
        Ok(())
    }

    /// The keys with a value for a direction.
    fn of(&self, direction: Direction) -> impl Iterator<Item = &str> {
        let keys = self.keys.iter().filter(move |(_, directions)| directions.contains(&direction));
        keys.map(|(key, _)| key.as_str())
    }
}

fn copy(key: &str, from: &Params, to: &mut Params) {
    match key {
        "rate" => (to.rate, to.trace) = (from.rate, from.trace.clone()),
        "aggregation" => to.aggregation = from.aggregation,
        "delay" => to.delay = from.delay,
        "queue" => to.queue = from.queue.clone(),
        "policer" => to.policer = from.policer,
        "loss" => to.loss = from.loss,
        "overhead" => to.overhead = from.overhead,
        "jitter" => to.jitter = from.jitter,
        "reorder" => to.reorder = from.reorder,
        "bucket" => to.bucket = from.bucket,
        "chunk" => to.chunk = from.chunk,
        _ => unreachable!("checked against LINK_KEYS"),
    }
}

#[cfg(test)]
mod tests {
    use pathcast_base::{Nanos, Rate};

    use super::*;

    const TEXT: &str = "[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\nrate = \"5Mbit\"\ndelay = \"10ms\"\n\
                        [[path]]\nname = \"p1\"\nlinks = [\"wan\"]\n";

    fn read(direction: Option<Direction>, changes: &[(&str, &str)]) -> Result<Amendment, AmendError> {
        let changes: Vec<_> = changes.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let template = Template::parse_in(TEXT, None).unwrap();
        Amendment::read(&template, &[("link.wan.loss".into(), "0.01".into())], "wan", direction, &changes)
    }

    fn link() -> Link {
        // what it has by now differs from the text
        let mut link = Scenario::parse(TEXT, &[]).unwrap().links.remove(0);
        link.ab.delay = Nanos::millis(33);
        link.ba.loss = 0.5.into();
        link
    }

    #[test]
    fn only_the_named_keys_change_and_only_in_the_named_direction() {
        let both = read(None, &[("rate", "2Mbit")]).unwrap();
        assert_eq!((both.link(), both.wanted().links[0].ab.loss), (0, 0.01.into()), "the sets of the beginning hold");
        let new = both.over(&link()).unwrap();
        assert_eq!(new.iter().map(|(direction, _)| *direction).collect::<Vec<_>>(), Direction::BOTH);
        assert!(new.iter().all(|(_, params)| params.rate == Some(Rate(2_000_000))));
        assert_eq!((new[0].1.delay, new[1].1.loss), (Nanos::millis(33), 0.5.into()));

        let back = read(Some(Direction::Ba), &[("rate", "{ ab = \"1Mbit\", ba = \"3Mbit\" }"), ("loss", "")]).unwrap();
        let [(Direction::Ba, params)] = &back.over(&link()).unwrap()[..] else { panic!("one direction") };
        assert_eq!((params.rate, params.loss), (Some(Rate(3_000_000)), 0.0.into()), "an empty value is the default");
    }

    #[test]
    fn a_value_of_one_direction_leaves_the_other_as_it_is() {
        for (direction, value) in [(None, "{ ab = \"1Mbit\" }"), (Some(Direction::Ab), "1Mbit")] {
            let one = read(direction, &[("rate", value), ("delay", "{ ab = \"7ms\" }")]).unwrap();
            let [(Direction::Ab, params)] = &one.over(&link()).unwrap()[..] else { panic!("one direction") };
            assert_eq!((params.rate, params.delay), (Some(Rate(1_000_000)), Nanos::millis(7)));
            // and so it is for a network that is made anew
            let again = Scenario::parse(TEXT, one.sets()).unwrap().links.remove(0);
            assert_eq!((again.ab.rate, again.ba.rate), (Some(Rate(1_000_000)), Some(Rate(5_000_000))));
            assert_eq!((again.ab.delay, again.ba.delay), (Nanos::millis(7), Nanos::millis(10)));
        }
        let each = read(None, &[("rate", "{ ab = \"1Mbit\" }"), ("loss", "{ ba = 0.2 }")]).unwrap();
        let [(_, ab), (_, ba)] = &each.over(&link()).unwrap()[..] else { panic!("both") };
        assert_eq!((ab.rate, ab.loss), (Some(Rate(1_000_000)), 0.0.into()));
        assert_eq!((ba.rate, ba.loss), (Some(Rate(5_000_000)), 0.2.into()));
        let error = read(Some(Direction::Ba), &[("rate", "{ ab = \"1Mbit\" }")]).unwrap_err();
        assert_eq!((error.code(), error.exit()), ("refused", Exit::Usage));
        assert!(error.to_string().contains("of direction ba; allowed: one value, or one for `ba`"), "{error}");
        // a default where there was none
        let none = read(Some(Direction::Ba), &[("jitter", ""), ("rate", "")]).unwrap();
        assert_eq!(none.over(&link()).unwrap()[0].1.rate, None);
        assert!(read(None, &[("rate", "{ ab = \"1Mbit\", x = 2 }")]).unwrap_err().to_string().contains("unknown key"));
    }

    #[test]
    fn what_a_later_change_does_not_name_stays() {
        let text = format!(
            "{TEXT}[[change]]\nat = \"1s\"\nlink = \"wan\"\nrate = {{ ab = \"2Mbit\" }}\ndelay = {{ ba = \"3ms\" }}\n\
             [[change]]\nat = \"2s\"\nlink = \"wan\"\nloss = 0.3\ndirection = \"ab\"\n"
        );
        let template = Template::parse_in(&text, None).unwrap();
        let read = |changes: &[(&str, &str)]| {
            let changes: Vec<_> = changes.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            Amendment::read(&template, &[], "wan", None, &changes).unwrap()
        };
        let scenario = Scenario::parse(&text, &[]).unwrap();
        let mut changes = scenario.changes.clone();
        let one = read(&[("rate", "9Mbit"), ("loss", "0.1"), ("delay", "{ ba = \"1ms\" }"), ("overhead", "200B")]);
        one.over_later(&one.over(&scenario.links[0]).unwrap(), &mut changes).unwrap();
        let then = changes.iter().map(|change| match &change.what {
            Changed::Link { params, .. } => (params.rate.unwrap().0, params.loss, params.delay, params.overhead.0),
            Changed::Traffic { .. } => panic!("links change"),
        });
        let (then, ten): (Vec<_>, _) = (then.collect(), Nanos::millis(10));
        assert_eq!(then[0], (2_000_000, 0.1.into(), ten, 200), "its own rate");
        assert_eq!(then[1], (9_000_000, 0.1.into(), Nanos::millis(3), 200), "its own delay");
        assert_eq!(then[2], (2_000_000, 0.3.into(), ten, 200), "that of the change before, and its own loss");
        // what fits the text and the link of now, but not the one of then
        let before = changes.clone();
        let bucket = read(&[("bucket", "{ rate = \"1Mbit\", burst = \"1600B\" }")]);
        let error = bucket.over_later(&bucket.over(&scenario.links[0]).unwrap(), &mut changes).unwrap_err();
        assert!(error.to_string().starts_with("link wan: `bucket.burst` is 1600B"), "{error}");
        assert_eq!(changes, before);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_is_allowed() {
        for (key, value, code, says) in [
            ("speed", "1Mbit", "unknown", "link key `speed` is not in this network; allowed: rate, delay, queue"),
            ("rate", "fast", "scenario", "--set link.wan.rate=fast"),
            ("loss", "1.5", "scenario", "0 to 1"),
        ] {
            let error = read(None, &[(key, value)]).unwrap_err();
            assert_eq!((error.code(), error.exit()), (code, Exit::Usage));
            assert!(error.to_string().contains(says), "{error}");
        }
        let error = Amendment::read(&Template::parse_in(TEXT, None).unwrap(), &[], "lan", None, &[]).unwrap_err();
        assert_eq!(error.to_string(), "link `lan` is not in this network; allowed: wan");
    }

    #[test]
    fn values_are_checked_together_with_those_of_now() {
        let bucket = read(None, &[("bucket", "{ rate = \"1Mbit\", burst = \"1500B\" }")]).unwrap();
        assert!(bucket.over(&link()).is_ok());
        let mut wide = link();
        wide.ab.overhead = pathcast_base::Bytes(100);
        let error = bucket.over(&wide).unwrap_err();
        assert!(error.to_string().starts_with("link wan: `bucket"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }

    #[test]
    fn a_queue_does_not_become_fair_nor_a_fair_one_another() {
        let fair = read(None, &[("queue", "{ kind = \"fair\", packets = 9 }")]).unwrap();
        let error = fair.over(&link()).unwrap_err();
        assert!(error.to_string().contains("cannot become one of another kind; allowed: packets, bytes"), "{error}");
        let mut fairly = link();
        (fairly.ab.queue, fairly.ba.queue) = (fair.wanted().links[0].ab.queue.clone(), fairly.ab.queue);
        let one = Amendment { directions: vec![Direction::Ab], ..fair };
        assert!(one.over(&fairly).is_ok());
        let plain = Amendment { directions: vec![Direction::Ab], ..read(None, &[("queue", "9 packets")]).unwrap() };
        assert!(plain.over(&fairly).unwrap_err().to_string().contains("allowed: a queue of kind fair"));
    }
}
