//! A standing network made from a text, and changes of its links in the words of that text.

use pathcast_base::Fault;
use pathcast_link::Params;
use pathcast_scenario::{Amendment, Changed, Direction, Scenario, Template};

use crate::run::{Source, World};
use crate::setup;

/// What [`World::amend`] gives.
pub type Amended = (Vec<(Direction, Params)>, Vec<(String, String)>);

impl World {
    /// The network that a scenario's text describes, with `sets` over it, at time zero.
    ///
    /// # Errors
    /// A scenario error, or as [`World::new`].
    pub fn open(text: &str, sets: &[(String, String)]) -> Result<World, Box<dyn Fault + Send + Sync>> {
        World::of(Template::parse_in(text, None).map_err(boxed)?, sets)
    }

    /// The same of a text that was read already.
    ///
    /// # Errors
    /// As [`World::open`].
    pub fn of(template: Template, sets: &[(String, String)]) -> Result<World, Box<dyn Fault + Send + Sync>> {
        let mut world = World::new(template.scenario(sets).map_err(boxed)?).map_err(boxed)?;
        world.source = Some(Source { template: template.into(), sets: sets.to_vec(), seen: 0 });
        Ok(world)
    }

    /// Changes keys of a link from now on, in one direction or in both; the values are written as in the scenario, and
    /// meet the same checks. Gives the link's new parameters by direction, and the change in the form of `sets`.
    ///
    /// # Errors
    /// Usage: an unknown link or key, or a value out of range. Nothing is changed then.
    ///
    /// # Panics
    /// If the world was not made by [`World::open`]: the text is not known then.
    pub fn amend(
        &mut self,
        link: &str,
        direction: Option<Direction>,
        changes: &[(String, String)],
    ) -> Result<Amended, Box<dyn Fault + Send + Sync>> {
        let source = self.source.as_ref().expect("a world that `World::open` made");
        let amendment = Amendment::read(&source.template, &source.sets, link, direction, changes).map_err(boxed)?;
        self.catch_up();
        let new = amendment.over(&self.scenario().links[amendment.link()]).map_err(boxed)?;
        let seen = self.source.as_ref().map_or(0, |source| source.seen);
        let mut scenario = self.scenario().clone();
        for (direction, params) in &new {
            *of(&mut scenario, amendment.link(), *direction) = params.clone();
        }
        amendment.over_later(&new, &mut scenario.changes[seen..]).map_err(boxed)?;
        setup::stands(&scenario, self.sim.now, &scenario.changes[seen..]).map_err(boxed)?;
        self.sim.scenario = scenario;
        for (direction, params) in &new {
            self.set(amendment.link(), *direction, params.clone());
        }
        if let Some(source) = &mut self.source {
            source.sets.extend_from_slice(amendment.sets());
        }
        Ok((new, amendment.sets().to_vec()))
    }

    /// Brings the copy of the links to where the scenario's own changes have brought the network.
    fn catch_up(&mut self) {
        let Some(source) = &mut self.source else { return };
        let (now, scenario) = (self.sim.now, &mut self.sim.scenario);
        let due = scenario.changes.iter().take_while(|change| change.at.0 <= now).count();
        for change in source.seen..due {
            if let Changed::Link { link, direction, params, .. } = &scenario.changes[change].what {
                let (link, direction, params) = (*link, *direction, params.clone());
                *of(scenario, link, direction) = params;
            }
        }
        source.seen = due;
    }
}

fn of(scenario: &mut Scenario, link: usize, direction: Direction) -> &mut Params {
    let link = &mut scenario.links[link];
    if direction == Direction::Ab { &mut link.ab } else { &mut link.ba }
}

pub(crate) fn boxed<E: Fault + Send + Sync + 'static>(error: E) -> Box<dyn Fault + Send + Sync> {
    Box::new(error)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;

    use pathcast_base::{Exit, Nanos, PathAddr, Protocol, Rate};

    use super::*;

    const TEXT: &str = "[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
                        [[path]]\nname = \"p1\"\nlinks = [\"wan\"]\n\
                        [[change]]\nat = \"100s\"\nlink = \"wan\"\ndelay = \"40ms\"\n";

    fn pair(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.into(), value.into())]
    }

    fn seconds(world: &mut World) -> f64 {
        let here = IpAddr::from([0; 4]);
        let path = PathAddr::new("p1", here, here);
        world.transfer(&[path], 1_000_000, None, Protocol::Tcp, |_| true).unwrap().elapsed_s
    }

    #[test]
    fn a_change_holds_from_now_on_and_on_top_of_the_scenarios_own() {
        let mut world = World::open(TEXT, &pair("link.wan.loss", "0")).unwrap();
        let before = seconds(&mut world);
        world.amend("wan", None, &pair("rate", "2Mbit")).unwrap();
        let slow = seconds(&mut world);
        assert!(slow > 3.0 * before, "{slow} after {before}");

        world.wait(Nanos::secs(100));
        let (new, sets) = world.amend("wan", Some(Direction::Ab), &pair("rate", "100Mbit")).unwrap();
        assert_eq!(sets, pair("link.wan.rate.ab", "100Mbit"));
        assert_eq!((new.len(), new[0].1.delay, new[0].1.rate), (1, Nanos::millis(40), Some(Rate(100_000_000))));
        let back = &world.scenario().links[0].ba;
        assert_eq!((back.delay, back.rate), (Nanos::millis(40), Some(Rate(2_000_000))), "what it does not name stays");
        assert!(seconds(&mut world) < before);
        world.check().unwrap();
    }

    #[test]
    fn a_refused_change_changes_nothing() {
        let mut world = World::open(TEXT, &[]).unwrap();
        let before = world.scenario().clone();
        for (link, key, value, says) in [
            ("lan", "rate", "1Mbit", "wan"),
            ("wan", "speed", "1Mbit", "allowed: rate, delay"),
            ("wan", "loss", "1.5", "0 to 1"),
            ("wan", "queue", "{ kind = \"fair\", packets = 9 }", "cannot become one of another kind"),
        ] {
            let error = world.amend(link, None, &pair(key, value)).unwrap_err();
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().contains(says), "{error}");
        }
        assert_eq!(*world.scenario(), before);
    }

    /// A link after a trace, whose file is given too.
    fn traced(name: &str) -> (World, PathBuf) {
        let folder = std::env::temp_dir().join(format!("pathcast-amend-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("rates.csv");
        std::fs::write(&file, "0,5Mbit\n1,2Mbit\n").unwrap();
        let text = TEXT.replace("\"10Mbit\"", "{ trace = \"rates.csv\" }");
        (World::of(Template::parse_in(&text, Some(&folder)).unwrap(), &[]).unwrap(), file)
    }

    #[test]
    fn a_change_is_judged_by_those_before_it() {
        let (mut world, file) = traced("before");
        let bucket = pair("bucket", "{ rate = \"1Mbit\", burst = \"60KB\" }");
        assert!(world.amend("wan", None, &bucket).is_err(), "not over a trace");
        world.amend("wan", None, &pair("rate", "5Mbit")).unwrap();
        world.amend("wan", None, &bucket).unwrap();
        let (mut copy, (new, _)) = (world.copy().unwrap(), world.amend("wan", None, &pair("loss", "0.1")).unwrap());
        assert!(new.iter().all(|(_, params)| params.bucket.is_some() && params.trace.is_none()));
        let trace = pair("rate", "{ trace = \"rates.csv\" }");
        assert!(world.amend("wan", None, &trace).is_err(), "not with a bucket");
        copy.amend("wan", None, &pair("bucket", "")).unwrap();
        copy.amend("wan", None, &trace).unwrap();
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_change_needs_no_file_again() {
        let (mut world, file) = traced("gone");
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
        world.amend("wan", None, &pair("delay", "30ms")).unwrap();
        assert!(world.scenario().links[0].ab.trace.is_some());
    }

    #[test]
    fn endless_work_at_one_instant_is_refused() {
        let line = TEXT.replace("rate = \"10Mbit\"\n", "").replace("40ms", "5ms");
        let tcp = "kind = \"tcp\"\n";
        for kind in [tcp, "kind = \"web\"\nthink = \"0s\"\n"] {
            let text = format!("{line}[[traffic]]\nname = \"t\"\npath = \"p1\"\ncontrol = \"reno\"\n{kind}");
            let mut world = World::open(&text, &[]).unwrap();
            world.limit(200_000);
            world.pass(Nanos::millis(200), &AtomicBool::new(false)).unwrap();
            let (before, refused) = (world.scenario().clone(), world.amend("wan", None, &pair("delay", "0s")));
            world.pass(Nanos::millis(200), &AtomicBool::new(false)).unwrap();
            let error = refused.unwrap_err();
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().starts_with("path.p1.links: "), "{error}");
            assert_eq!(*world.scenario(), before);
            world.amend("wan", Some(Direction::Ba), &pair("delay", "0s")).unwrap();
            world.amend("wan", None, &pair("rate", "10Mbit")).unwrap();
            world.amend("wan", None, &pair("delay", "0s")).unwrap();
        }
        // a world has no end, and changes are still to come
        let stop = |stop: &str| {
            format!("end = \"1s\"\n{line}[[traffic]]\nname = \"t\"\npath = \"p1\"\ncontrol = \"reno\"\n{tcp}{stop}")
        };
        let zero = "[[change]]\nat = \"200s\"\nlink = \"wan\"\ndelay = \"0s\"\n";
        assert!(World::open(&(stop("") + zero), &[]).is_err());
        let rate = pair("link.wan.rate", "1Mbit");
        let mut world = World::open(&(stop("") + zero), &rate).unwrap();
        assert!(world.amend("wan", None, &pair("rate", "")).is_err());
        let mut world = World::open(&(stop("stop = \"150s\"\n") + zero), &rate).unwrap();
        world.amend("wan", None, &pair("rate", "")).unwrap();
    }

    #[test]
    fn a_fair_queue_may_change_as_one() {
        let mut world = World::open(TEXT, &pair("link.wan.queue", "{ kind = \"fair\", packets = 50 }")).unwrap();
        world.amend("wan", None, &pair("queue", "{ kind = \"fair\", packets = 20 }")).unwrap();
        assert!(seconds(&mut world) > 0.8);
    }

    #[test]
    fn what_is_no_scenario_and_what_the_simulator_refuses() {
        assert_eq!(World::open("x = 1", &[]).err().unwrap().code(), "scenario");
        let flow = format!("{TEXT}[[flow]]\nname = \"f\"\npaths = [\"p1\"]\nbytes = \"1MB\"\ncontrol = \"nosuch\"\n");
        assert!(World::open(&flow, &[]).err().unwrap().to_string().contains("nosuch"));
    }
}
