//! `[[switch]]`: what it means, and every rule of it broken once.

use std::path::PathBuf;

use crate::common::{good, refusal};
use pathcast_scenario::{Direction, Place, Scenario, addresses};

fn shipped() -> String {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "python", "pathcast", "topologies"].iter().collect();
    std::fs::read_to_string(folder.join("openflow.toml")).unwrap()
}

#[test]
fn paths_of_switches_are_paths_of_one_address_pair() {
    let s = good(&shipped());
    let names: Vec<(&str, u16)> = s.switches.iter().map(|switch| (switch.name.as_str(), switch.ports)).collect();
    assert_eq!(names, [("left", 3), ("right", 3)]);
    let wan = &s.links[s.link("wan2").unwrap()];
    assert_eq!((wan.nodes(Direction::Ab), wan.a_port, wan.b_port), (("left", "right"), Some(3), Some(3)));
    assert_eq!(s.links[0].a_port, None);
    // the simulator goes by these
    let hops = |path: usize| s.paths[path].hops.iter().map(|hop| s.links[hop.link].name.as_str()).collect::<Vec<_>>();
    assert_eq!([hops(0)[1], hops(1)[1]], ["wan1", "wan2"]);
    let found = addresses(&s, 77);
    assert_eq!((&found[0], found[0].on_link), (&found[1], true));
    assert_eq!(found[0].remote.to_string(), "10.77.1.1");
    let flow = "[[flow]]\nname = \"f\"\npaths = [\"path1\", \"path2\"]\nsubflows = 4\nbytes = \"1MB\"\n";
    let twice = good(&format!("{}{flow}", shipped()));
    // ports tell repetitions apart
    assert_eq!(addresses(&twice, 77)[0].local.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.77.1.2"; 2]);
    assert_eq!(Scenario::from_json(&s.to_json()).unwrap(), s);
    assert!(!s.to_json().contains("controller"), "pathcast's own");
}

#[test]
fn the_wan_is_that_of_two_gigabit() {
    let s = good(&shipped());
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "python", "pathcast", "topologies"].iter().collect();
    let plain = Scenario::load(folder.join("two-gigabit.toml"), &[]).unwrap();
    for name in ["wan1", "wan2"] {
        let (one, other) = (&s.links[s.link(name).unwrap()], &plain.links[plain.link(name).unwrap()]);
        assert_eq!((&one.ab, &one.ba), (&other.ab, &other.ba));
    }
}

#[test]
fn controllers_of_others() {
    let with =
        |controller: &str| shipped().replacen("ports = 3", &format!("ports = 3\ncontroller = {controller:?}"), 1);
    for controller in ["tcp:127.0.0.1:6653", "tcp:[::1]:6653", "unix:/run/x/of"] {
        assert_eq!(good(&with(controller)).switches[0].controller.as_deref(), Some(controller));
    }
    assert_eq!(good(&with("pathcast")).switches[0].controller, None);
    for controller in ["", "none", "tcp:127.0.0.1", "tcp:127.0.0.1:0", "ssl:127.0.0.1:6653", "unix:of"] {
        let shown = refusal(&with(controller), &[]).to_string();
        assert!(shown.contains("a switch without a controller; allowed: pathcast, tcp:ADDRESS:PORT"), "{shown}");
    }
    assert!(refusal(&shipped(), &[("switch.left.controller", "x")]).to_string().contains("without a controller"));
    let set = crate::common::sets(&[("switch.right.controller", "tcp:127.0.0.1:1")]);
    assert!(Scenario::parse(&shipped(), &set).unwrap().switches[1].controller.is_some());
}

#[test]
fn refusals() {
    let more = "[[switch]]\nname = \"left\"\nports = 1\n";
    let loose = "[[link]]\nname = \"x\"\na = \"left:3\"\nb = \"right:3\"\n";
    for (from, to, key, message) in [
        (
            "b     = \"left:1\"",
            "b = \"left:9\"",
            "link.client-left.b",
            "switch `left` has no port `9`; allowed: left:1 to",
        ),
        ("b     = \"left:1\"", "b = \"left:0\"", "link.client-left.b", "no port `0`"),
        ("b     = \"left:1\"", "b = \"left:x\"", "link.client-left.b", "no port `x`"),
        ("b     = \"left:1\"", "b = \"left\"", "link.client-left.b", "a port of switch `left` is missing"),
        ("b     = \"left:1\"", "b = \"lift:1\"", "link.client-left.b", "no switch `lift`; allowed: left, right"),
        ("b     = \"left:1\"", "b = \"r1\"", "link.client-left.b", "`r1` is no switch"),
        ("a      = \"left:3\"", "a = \"left:2\"", "link.wan2.a", "link `wan1` ends there already"),
        ("a      = \"left:3\"", "a = \"right:2\"", "link.wan2.b", "both ends are the same node"),
        ("name  = \"right\"\nports = 3", "name = \"right\"\nports = 0", "switch.right.ports", "1 to 64"),
        ("name  = \"right\"\nports = 3", "name = \"right\"\nports = 65", "switch.right.ports", "1 to 64"),
        ("name  = \"right\"\nports = 3", "name = \"right\"\nports = -1", "switch.right.ports", "1 to 64"),
        ("name  = \"right\"\nports = 3", "name = \"right\"\nports = 70000", "switch.right.ports", "1 to 64"),
        (
            "name  = \"left\"\nports = 3",
            "name = \"a-name-of-16-char\"\nports = 3",
            "switch.a-name-of-16-char.name",
            "1 to 15",
        ),
        ("name  = \"left\"\nports = 3", "name = \"client\"\nports = 3", "switch.client.name", "not a switch's name"),
        ("[[path]]\nname  = \"path1\"", more, "switch", ""),
        (
            "[\"client-left\", \"wan2\", \"right-server\"]",
            "[\"client-left\", \"wan2\", \"wan1\"]",
            "path.path2.links",
            "comes back to `left`: a cycle",
        ),
        (
            "[\"client-left\", \"wan2\", \"right-server\"]",
            "[\"client-left\", \"wan2\"]",
            "path.path2.links",
            "the path ends at `right`",
        ),
        (
            "name  = \"path2\"",
            "name = \"path2\"\nlocal = \"10.0.0.2\"",
            "path.path2.local",
            "have the addresses of the first",
        ),
        (
            "name  = \"path1\"",
            "name = \"path1\"\nlocal = \"10.0.0.2\"\nremote = \"10.0.1.1\"",
            "path.path1.remote",
            "not a neighbour",
        ),
        ("name  = \"path1\"", "name = \"path1\"\nremote = \"path2\"", "path.path1.remote", "not an IP address"),
    ] {
        assert!(shipped().contains(from), "{from}");
        let text = if key == "switch" { format!("{}{more}", shipped()) } else { shipped().replacen(from, to, 1) };
        let refused = refusal(&text, &[]);
        let shown = refused.to_string();
        assert!(matches!(refused.place, Place::Line(_)) && refused.key.starts_with(key), "{shown}");
        assert!(shown.contains(message), "{shown}: no {message}");
    }
    let text = format!("{}{loose}", shipped());
    assert!(refusal(&text, &[]).to_string().contains("link `wan2` ends there already"));
    let second = "[[link]]\nname = \"x\"\na = \"client\"\nb = \"right:4\"\n";
    let shown = refusal(&format!("{}{second}", shipped().replace("ports = 3", "ports = 4")), &[]).to_string();
    assert!(shown.contains("link `client-left` ends there already"), "{shown}");
}
