//! The port that the system chooses is one for TCP and for UDP.

use std::io;
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

fn start(taken: usize) -> (Result<Far, pathcast_far::FarError>, usize) {
    let maker = Arc::new(Crowded { left: AtomicUsize::new(taken), ..Crowded::default() });
    let config = Config {
        bind: vec!["127.0.0.1".parse().unwrap()],
        port: 0,
        keys: Vec::new(),
        announce: Vec::new(),
        limits: MeasureLimits::default(),
        stamp_port: None,
        stamp_open: false,
        log: false,
    };
    (Far::start(maker.clone(), config), maker.others.lock().unwrap().len())
}

#[test]
fn another_one_is_chosen_where_udp_has_none() {
    let (far, met) = start(3);
    assert_eq!(met, 3);
    assert_ne!(far.unwrap().listening()[0].port(), 0);
    assert!(start(1000).0.is_err(), "but not for ever");
}
