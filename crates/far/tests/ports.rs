//! Where it listens: the port that the system chooses is one for TCP and for UDP, and without IPv6 there is IPv4.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pathcast_base::Protocol;
use pathcast_far::{Config, Far};
use pathcast_measure::MeasureLimits;
use pathcast_net::{Family, HostSockets, SocketMaker};

use socket2::{Socket, Type};

/// Of the first ports that TCP gets somebody else has that of UDP.
#[derive(Default)]
struct Crowded {
    left: AtomicUsize,
    tcp: Mutex<Vec<Socket>>,
    others: Mutex<Vec<Socket>>,
}

impl SocketMaker for Crowded {
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()> {
        HostSockets.run(work)
    }

    fn tcp(&self, family: Family, protocol: Protocol) -> io::Result<Socket> {
        let made = HostSockets.tcp(family, protocol)?;
        self.tcp.lock().unwrap().push(made.try_clone()?);
        Ok(made)
    }

    fn udp(&self, family: Family) -> io::Result<Socket> {
        let tcp = self.tcp.lock().unwrap().drain(..).next();
        if let Some(tcp) = tcp
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
        {
            let address = tcp.local_addr()?;
            let taken = Socket::new(address.domain(), Type::DGRAM, None)?;
            taken.bind(&address)?;
            self.others.lock().unwrap().push(taken);
        }
        HostSockets.udp(family)
    }
}

/// A host whose kernel was started without IPv6.
struct OnlyIpv4;

impl OnlyIpv4 {
    fn check(family: Family) -> io::Result<()> {
        match family {
            Family::V4 => Ok(()),
            Family::V6 => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        }
    }
}

impl SocketMaker for OnlyIpv4 {
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()> {
        HostSockets.run(work)
    }

    fn tcp(&self, family: Family, protocol: Protocol) -> io::Result<Socket> {
        OnlyIpv4::check(family).and_then(|()| HostSockets.tcp(family, protocol))
    }

    fn udp(&self, family: Family) -> io::Result<Socket> {
        OnlyIpv4::check(family).and_then(|()| HostSockets.udp(family))
    }
}

fn config(bind: &[&str], loopback: bool) -> Config {
    Config {
        bind: bind.iter().map(|address| address.parse().unwrap()).collect(),
        loopback,
        port: 0,
        keys: Vec::new(),
        announce: Vec::new(),
        limits: MeasureLimits::default(),
        stamp_port: None,
        stamp_open: false,
        log: false,
    }
}

fn start(taken: usize) -> (Result<Far, pathcast_far::FarError>, usize) {
    let maker = Arc::new(Crowded { left: AtomicUsize::new(taken), ..Crowded::default() });
    (Far::start(maker.clone(), config(&["127.0.0.1"], false)), maker.others.lock().unwrap().len())
}

#[test]
fn another_one_is_chosen_where_udp_has_none() {
    let (far, met) = start(3);
    assert_eq!(met, 3);
    assert_ne!(far.unwrap().listening()[0].port(), 0);
    assert!(start(1000).0.is_err(), "but not for ever");
}

#[test]
fn without_ipv6_it_listens_on_ipv4_unless_ipv6_was_asked_for() {
    for (loopback, expected) in [(true, "127.0.0.1"), (false, "0.0.0.0")] {
        let far = Far::start(Arc::new(OnlyIpv4), config(&[], loopback)).unwrap();
        let listening: Vec<IpAddr> = far.listening().iter().map(|address| address.ip()).collect();
        assert_eq!(listening, [expected.parse::<IpAddr>().unwrap()]);
    }
    let asked = Far::start(Arc::new(OnlyIpv4), config(&["127.0.0.1", "::1"], false));
    assert!(asked.err().unwrap().to_string().starts_with("cannot listen on [::1]"));
}
