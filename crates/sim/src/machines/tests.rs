//! That places of payloads are used again.

use pathcast_base::Nanos;
use pathcast_measure::machine::{Action, Event, Machine, Train};
use pathcast_scenario::Scenario;

use crate::run::{Options, World};

/// Sends 100 packets and is done at the first timer.
struct Burst(Vec<Action>);

impl Machine for Burst {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Started => {
                self.0.push(Action::WakeAt(now + Nanos::millis(100)));
                self.0.push(Action::SendTrain(Train::even(0, 0, now, 100, Nanos(0), 1000).with_heads(16, |_, _| ())));
            }
            Event::Timer => self.0.push(Action::Done(Vec::new())),
            _ => {}
        }
    }
    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.0.pop()
    }
}

struct Deaf;

impl Machine for Deaf {
    fn handle(&mut self, _: Nanos, _: Event<'_>) {}
    fn next(&mut self, _: Nanos) -> Option<Action> {
        None
    }
}

#[test]
fn places_are_used_again() {
    let text = r#"
        link = [{ name = "l", a = "client", b = "server", rate = "1Mbit", delay = "5ms", queue = "40 packets", loss = 0.1 }]
        path = [{ name = "p", links = ["l"] }]
    "#;
    let mut world = World::new(Scenario::parse(text, &[]).unwrap()).unwrap();
    for _ in 0..20 {
        let options = Options::default();
        world.session(Box::new(Burst(Vec::new())), Box::new(Deaf), &[0], &options, |_| ()).unwrap();
        // 8 ms a packet: most are still inside when it is over
        let payloads = &world.sim.machines.payloads;
        assert_eq!(payloads.in_use() as u64, world.sim.network.inside());
        assert!(payloads.in_use() > 20);
        assert!(payloads.places() <= 42, "{}", payloads.places());
        world.wait(Nanos::secs(1));
        assert_eq!(world.sim.machines.payloads.in_use(), 0);
        world.check().unwrap();
    }
}
