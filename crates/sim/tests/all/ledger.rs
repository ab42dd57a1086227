//! The ledger of a standing network says what its links have done up to now.

use std::net::IpAddr;

use pathcast_base::{Nanos, PathAddr, Protocol};
use pathcast_link::LinkLedger;
use pathcast_scenario::Scenario;
use pathcast_sim::World;

const LINE: &str = r#"
link = [{ name = "wire", a = "client", b = "server", rate = "10Mbit", delay = "20ms", queue = "100 packets" }]
path = [{ name = "p", links = ["wire"] }]
traffic = [{ kind = "constant", link = "wire", direction = "ab", rate = "1.2Mbit", packet = "1500B" }]
"#;

fn link(world: &mut World, name: &str) -> LinkLedger {
    world.ledger().groups.remove(0).links.into_iter().find(|link| link.name == name).unwrap()
}

#[test]
fn cross_traffic_is_counted_up_to_now() {
    let mut world = World::new(Scenario::parse(LINE, &[]).unwrap()).unwrap();
    let before = link(&mut world, "wire/ab").counters.cross.entered.packets;
    world.wait(Nanos::secs(10));
    // 100 packets a second
    let entered = link(&mut world, "wire/ab").counters.cross.entered.packets - before;
    assert!((999..=1001).contains(&entered), "{entered}");
    assert_eq!(link(&mut world, "wire/ba").counters.cross.entered.packets, 0);
    assert_eq!(world.ledger().groups[0].since_start_s, 10.0);
}

#[test]
fn transfers_are_counted_as_carried() {
    let mut world = World::new(Scenario::parse(LINE, &[]).unwrap()).unwrap();
    let path = PathAddr::new("p", IpAddr::from([0; 4]), IpAddr::from([0; 4]));
    world.transfer(&[path], 1_000_000, None, Protocol::Tcp, |_| true).unwrap();
    let carried = link(&mut world, "wire/ab").counters.carried.bytes;
    assert!((1_000_000..1_100_000).contains(&carried), "{carried}");
    assert!(link(&mut world, "wire/ba").counters.carried.packets > 0);
}
