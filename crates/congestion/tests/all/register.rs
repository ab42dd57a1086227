//! The register: names, parameters and their ranges, and what is refused.

use pathcast_base::{Exit, Fault};
use pathcast_congestion::{
    CongestionError, Connection, Flow, Instance, PEERS, Params, controller, controllers, parse_value,
};

#[test]
fn both_sides_of_the_border_agree_on_sizes() {
    assert!(!controllers().is_empty()); // panics where a size differs
    assert_eq!(size_of::<Flow>(), 120 + 8 + 48 * PEERS + 16);
}

#[test]
fn names_are_unique_and_fit_the_kernel() {
    for (i, info) in controllers().iter().enumerate() {
        assert!(info.kernel_name.starts_with("pc_") && info.kernel_name.len() <= 13, "{}", info.kernel_name); // `_2` fits
        assert!(controllers()[..i].iter().all(|o| o.name != info.name && o.kernel_name != info.kernel_name));
        assert!(info.basis.contains("certain") || info.basis.contains("reconstruction"), "{}", info.name);
        assert!(!info.paper.is_empty());
    }
}

#[test]
fn defaults_are_in_range_and_every_parameter_says_what_it_is() {
    for info in controllers() {
        assert!(info.params.iter().any(|param| param.name == "initial_ssthresh_bytes"), "{}", info.name);
        for (i, param) in info.params.iter().enumerate() {
            assert!((param.least..=param.most).contains(&param.default), "{}.{}", info.name, param.name);
            assert!(!param.text.is_empty() && !param.source.is_empty());
            assert!(info.params[..i].iter().all(|other| other.name != param.name));
        }
    }
}

#[test]
fn states_are_small() {
    assert!(controllers().iter().all(|info| info.state_bytes <= 512));
}

#[test]
fn every_header_is_in_the_register() {
    let headers = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/c")).unwrap();
    for path in headers.map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        // what has hooks is a controller, what has none a part of one
        if std::fs::read_to_string(&path).unwrap().contains(&format!("#define {name}_hooks ")) {
            assert!(controller(name).is_ok(), "{name}");
        }
    }
}

#[test]
fn values_have_the_units_that_their_names_say() {
    assert_eq!(parse_value("st_div", " 8 "), Ok(8));
    assert_eq!(parse_value("initial_ssthresh_bytes", "14480"), Ok(14_480));
    assert_eq!(parse_value("initial_ssthresh_bytes", "10KB"), Ok(10_000));
    assert_eq!(parse_value("theta_floor_us", "4ms"), Ok(4000));
    assert_eq!(parse_value("st_div", "-1").unwrap_err(), "`-1` is not a whole number");
    assert_eq!(parse_value("st_div", "8B").unwrap_err(), "`8B` is not a whole number");
    assert!(parse_value("initial_ssthresh_bytes", "10Kbit").unwrap_err().contains("in bytes, not in bits"));
    assert!(parse_value("initial_ssthresh_bytes", "").unwrap_err().contains("it is empty"));
    assert!(parse_value("st_div", "99999999999999999999").unwrap_err().contains("too large"));
}

#[test]
fn refusals_name_the_value_and_what_is_allowed() {
    let error = controller("bbr9").unwrap_err();
    assert!(error.to_string().starts_with("`bbr9` is no congestion controller; allowed: reno, cubic, lia"), "{error}");
    assert_eq!((error.code(), error.exit()), ("unknown-controller", Exit::Usage));
    let mut params = Params::new(controller("gsam").unwrap());
    let error = params.set("theta", 1).unwrap_err();
    assert!(error.to_string().contains("`gsam` has no parameter `theta`") && error.to_string().contains("theta_shift"));
    let error = params.set("st_div", 65).unwrap_err();
    assert_eq!(error.to_string(), "`gsam.st_div` is 65; allowed: 0 to 64");
    assert!(matches!(error, CongestionError::OutOfRange { value: 65, least: 0, most: 64, .. }));
    assert!(params.set("st_div", 1 << 40).is_err());
    assert_eq!(params.value("st_div"), Ok(8));
    params.set("st_div", 4).unwrap();
    assert_eq!(params.value("st_div"), Ok(4));
}

#[test]
fn a_group_is_full_at_its_last_slot_and_slots_are_used_again() {
    let mut connection = Connection::new();
    let mut flows = vec![Flow::new(1448, 10); PEERS];
    for (i, flow) in flows.iter_mut().enumerate() {
        assert_eq!(connection.join(flow), Some(i as u32));
    }
    let mut late = Flow::new(1448, 10);
    assert_eq!(connection.join(&mut late), None);
    assert_eq!((late.group.n, late.slot), (1, 0));
    connection.leave(&flows[3]);
    assert_eq!(connection.group().n, PEERS as u32 - 1);
    assert_eq!(connection.join(&mut late), Some(3));
    assert_eq!((late.group.n, late.group.joins), (PEERS as u32, PEERS as u32 + 1));
    assert_eq!(connection.group().peer[3].id, PEERS as u32 + 1);
}

#[test]
fn mail_is_told_once() {
    let mut connection = Connection::new();
    let (mut a, mut b) = (Flow::new(1448, 10), Flow::new(1448, 10));
    connection.join(&mut a);
    connection.join(&mut b);
    (b.post_to, b.post) = (0, 5);
    connection.deliver(&b);
    connection.deliver(&b);
    connection.meet(&mut a, false);
    assert_eq!((a.mail, a.group.peer[0].mail), (0, 10));
    connection.meet(&mut a, true);
    assert_eq!((a.mail, a.group.peer[0].mail), (10, 0));
    connection.meet(&mut a, true);
    assert_eq!(a.mail, 0);
}

#[test]
fn flows_can_be_simulated_on_any_thread() {
    fn free<T: Send + Sync>() {}
    free::<Instance>();
    free::<Flow>();
    free::<Connection>();
    free::<Params>();
}

#[test]
fn a_clone_goes_on_alone() {
    let mut flow = Flow::new(1448, 10);
    let mut one = Instance::new(&Params::new(controller("nice").unwrap()));
    one.init(&mut flow);
    let two = one.clone();
    assert_eq!(one.state(), two.state());
    assert_eq!(one.state().len(), one.info().state_bytes);
}
