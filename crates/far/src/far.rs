//! A running far end.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use pathcast_measure::stamp::{Mode, ReflectorOptions, StampKey};
use pathcast_measure::{FarEnd, Happened, MeasureLimits};
use pathcast_net::udp::{FarAddress, FarOptions, FarServer, SessionClock, StampReflector};
use pathcast_net::{Family, Limits, NetError, Note, ServerConfig, ServerEvent, SocketMaker, Warnings, entropy};
use pathcast_session::address::is_one_host;
use pathcast_session::{Admission, Key, KeyRing, Quota};

use crate::FarError;
use crate::limits;
use crate::log::{self, Log, LogLine};

/// Addresses to listen on and to tell.
const GIVE: &str = "give an address of this host, such as 192.0.2.1 or 2001:db8::1";
/// How often the system may choose a port.
const CHOICES: usize = 20;

/// Refuses addresses that no client can reach.
fn check(config: &Config) -> Result<(), FarError> {
    for (option, addresses) in [("--bind", &config.bind), ("--announce", &config.announce)] {
        for address in addresses {
            let problem = match address {
                // the wildcard is to listen on
                address if option == "--bind" && address.is_unspecified() => continue,
                address if !is_one_host(*address) => "no single host has it",
                IpAddr::V6(address) if address.is_unicast_link_local() => {
                    "a link-local address means nothing elsewhere"
                }
                _ => continue,
            };
            return Err(FarError::usage(format!("{option} `{address}`: {problem}; {GIVE}")));
        }
    }
    Ok(())
}

/// Where it listens unless it is told: of IPv4 and IPv6 what this host has, of which the one may be missing or switched off.
fn present(maker: &dyn SocketMaker, loopback: bool) -> Vec<IpAddr> {
    let usual: [IpAddr; 2] = match loopback {
        true => [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        false => [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
    };
    let missing = |address: IpAddr| {
        let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
        let tried = maker.udp(family).and_then(|socket| socket.bind(&SocketAddr::new(address, 0).into()));
        matches!(tried.map_err(|e| e.raw_os_error()), Err(Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)))
    };
    let found: Vec<_> = usual.into_iter().filter(|&address| !missing(address)).collect();
    // where there is neither, to listen tells why
    if found.is_empty() { usual.to_vec() } else { found }
}

/// How a far end is to run.
pub struct Config {
    /// Addresses to listen on; none: all, or those of loopback, of the IP versions that this host has.
    pub bind: Vec<IpAddr>,
    /// Whether it listens on loopback only where no address is given.
    pub loopback: bool,
    /// Of TCP and UDP; 0: the system chooses one.
    pub port: u16,
    /// Who may use it.
    pub keys: Vec<Key>,
    /// Addresses to announce; none: those listened on.
    pub announce: Vec<IpAddr>,
    /// What is granted.
    pub limits: MeasureLimits,
    /// Port of a STAMP reflector; none: there is none.
    pub stamp_port: Option<u16>,
    /// Whether it answers everyone, and not only who has one of the keys.
    pub stamp_open: bool,
    /// Whether sessions and transfers are kept for [`Said::log`].
    pub log: bool,
}

/// Transfers over TCP, measurements over UDP at the same port, and STAMP where asked for; stops when dropped.
pub struct Far {
    transfers: pathcast_net::Server,
    measurements: FarServer<FarEnd<FarAddress>>,
    stamp: Option<StampReflector>,
    stamp_open: bool,
    serves: bool,
    warnings: Arc<Warnings>,
    log: Arc<Log>,
}

impl Far {
    /// Listens, with sockets of `maker`'s.
    ///
    /// # Errors
    /// Those of the sockets: an address that cannot be listened on, a privilege that lacks.
    pub fn start(maker: Arc<dyn SocketMaker>, config: Config) -> Result<Far, FarError> {
        check(&config)?;
        // a port that is free for TCP may be another's for UDP, or of the other family: where the system chooses, it chooses again
        for _ in 1..if config.port == 0 { CHOICES } else { 1 } {
            match Far::begin(maker.clone(), &config) {
                Err(FarError::Net(NetError::Listen { source, .. })) if source.kind() == ErrorKind::AddrInUse => {}
                begun => return begun,
            }
        }
        Far::begin(maker, &config)
    }

    fn begin(maker: Arc<dyn SocketMaker>, config: &Config) -> Result<Far, FarError> {
        let admission = Admission::new(config.limits.sessions);
        let bind = if config.bind.is_empty() { present(&*maker, config.loopback) } else { config.bind.clone() };
        let warnings = Arc::new(Warnings::default());
        let log = Arc::new(Log::default());
        let (heard, kept, logging) = (warnings.clone(), log.clone(), config.log);
        let transfers = ServerConfig {
            listen: bind.into_iter().map(|address| SocketAddr::new(address, config.port)).collect(),
            keys: config.keys.clone(),
            limits: Limits::default(),
            admission: Some(admission.clone()),
            announce: config.announce.clone(),
            stamp_port: config.stamp_port.unwrap_or(0),
            on_event: Some(Arc::new(move |event: &ServerEvent| {
                // what the protocol meets is counted; what the system lacks is said
                match event {
                    ServerEvent::Warning(text) => heard.add(text),
                    ServerEvent::Session(note @ (Note::Refused { .. } | Note::TimedOut { .. })) if logging => {
                        kept.refused(note.to_string(), log::now());
                    }
                    ServerEvent::Session(note) if logging => kept.keep(note.to_string(), log::now()),
                    ServerEvent::Session(_) => {}
                }
            })),
        };
        let transfers = pathcast_net::Server::start(maker.clone(), transfers)?;
        limits::hollow(&config.limits).iter().for_each(|told| warnings.add(told));
        let listen = transfers.local_addrs().to_vec();
        let modes = match config.stamp_open {
            true => vec![Mode::Open],
            false => config.keys.iter().map(|key| Mode::Authenticated(StampKey::of(key))).collect(),
        };
        let stamp = config.stamp_port.map(|port| {
            let on: Vec<_> = listen.iter().map(|address| SocketAddr::new(address.ip(), port)).collect();
            let own_ports = listen.iter().map(SocketAddr::port).collect();
            StampReflector::start(&*maker, &on, ReflectorOptions { modes, own_ports, ..ReflectorOptions::default() })
        });
        let stamp = stamp.transpose()?;
        let clock = SessionClock::start();
        let far_end = FarEnd::new(KeyRing::new(config.keys.clone()), config.limits, clock.state(), entropy()?)
            .admitting(admission);
        let kept = log.clone();
        let far_end = match config.log {
            true => far_end.telling(move |note| match note.what {
                Happened::Denied(_) => kept.refused(note.to_string(), log::now()),
                _ => kept.keep(note.to_string(), log::now()),
            }),
            false => far_end,
        };
        let measurements = FarServer::start(&*maker, FarOptions { listen, clock, urgent: true }, far_end)?;
        let Quota { in_all, per_key, per_source } = config.limits.sessions;
        let serves = in_all.min(per_key).min(per_source) > 0;
        Ok(Far { transfers, measurements, stamp, stamp_open: config.stamp_open, serves, warnings, log })
    }

    /// Where it listens, what it has, what it has done.
    pub fn describe(&self) -> serde_json::Value {
        let (measuring, measured) = self.measurements.with(|far| (far.sessions(), far.counters()));
        let stamp = self.stamp.as_ref().map(|reflector| {
            serde_json::json!({
                "listening": reflector.local_addrs(),
                "mode": if self.stamp_open { "open" } else { "authenticated" },
                "answered": reflector.answered(),
                "ignored": reflector.ignored(),
            })
        });
        serde_json::json!({
            "listening": self.transfers.local_addrs(),
            "mptcp": self.transfers.mptcp(),
            "forward": self.transfers.forward(),
            "sessions": self.transfers.sessions(),
            "counters": self.transfers.counters(),
            "measurements": { "sessions": measuring, "counters": measured },
            "stamp": stamp,
            "notes": self.warnings.all(),
        })
    }

    /// Where it listens, the chosen port included.
    pub fn listening(&self) -> &[SocketAddr] {
        self.transfers.local_addrs()
    }

    /// Whether its limits let anybody in.
    pub fn serves(&self) -> bool {
        self.serves
    }

    /// What is to be said to whoever runs it.
    pub fn said(&self) -> Said {
        Said { warnings: self.warnings.clone(), log: self.log.clone() }
    }

    /// What is to be said of it now, which is noted where [`Far::said`] has it.
    pub fn look(&self) {
        if self.measurements.faults() > 0 {
            let told = "a bug cut a measurement short: please report the panic that standard error has of it";
            self.warnings.add_once(told);
        }
        if self.measurements.is_stale() {
            self.warnings.add_once("the system's clock was set: start again, or one-way delays are relative");
        }
    }
}

/// What a far end says; it outlives the far end, whose end it may tell.
#[derive(Clone)]
pub struct Said {
    warnings: Arc<Warnings>,
    log: Arc<Log>,
}

impl Said {
    /// What it warns of, since the last call.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.due()
    }

    /// Sessions, transfers and who was refused since the last call, oldest first; none unless asked for.
    pub fn log(&self) -> Vec<LogLine> {
        self.log.take(log::now())
    }
}
