//! Whether a further subflow of an MPTCP connection comes about over the same path: MP_JOIN, which a middlebox may treat
//! otherwise than MP_CAPABLE.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use serde::Serialize;
use socket2::Socket;

use crate::events::{EventKind, reset_reason};
use crate::info;
use crate::maker::{Family, SocketMaker};
use crate::path_manager::{Commands, Events};
use crate::poll;
use crate::switch;

/// An address id that no other address of the connection has.
const ID: u8 = 250;

/// What became of a join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Joined {
    /// `joined`, `refused`, `silent`, or `untried`.
    pub outcome: &'static str,
    /// In words, where it was not joined.
    pub reason: Option<String>,
}

impl Joined {
    fn untried(why: impl ToString) -> Joined {
        Joined { outcome: "untried", reason: Some(why.to_string()) }
    }
}

/// What asks for a join.
pub(crate) struct Joiner {
    commands: Commands,
    events: Events,
}

/// An MPTCP socket, and what asks for joins in it, or why there is none.
///
/// # Errors
/// Only when there is no MPTCP socket at all.
pub(crate) fn make(maker: &dyn SocketMaker, family: Family) -> io::Result<(Socket, Result<Joiner, Joined>)> {
    let joiner = Commands::open(maker).and_then(|commands| {
        let events = commands.subscribe(maker)?;
        Ok(Joiner { commands, events })
    });
    match joiner {
        Ok(joiner) => {
            let made = switch::make(maker, family)?;
            Ok((made.socket, made.kernel_managed.map_or(Ok(joiner), |why| Err(Joined::untried(why)))))
        }
        Err(error) => Ok((maker.tcp(family, pathcast_base::Protocol::Mptcp)?, Err(Joined::untried(error)))),
    }
}

impl Joiner {
    /// Asks for a subflow between the ends of `socket`, whose connection has carried data both ways.
    pub fn join(&mut self, socket: &Socket, until: Instant) -> Joined {
        let Ok(Some(connection)) = info::mptcp(socket) else { return Joined::untried("no MPTCP connection") };
        let address = |a: io::Result<socket2::SockAddr>| a.ok().and_then(|a| a.as_socket());
        let (Some(local), Some(remote)) = (address(socket.local_addr()), address(socket.peer_addr())) else {
            return Joined::untried("no MPTCP connection");
        };
        let own = |end: Option<SocketAddr>| end.is_some_and(|end| end.port() == local.port());
        // older kernels refuse id 0, that of the first subflow's address
        let from = SocketAddr::new(local.ip(), 0);
        let create = |commands: &mut Commands, id| commands.create(connection.token, id, from, remote, false);
        if let Err(error) = create(&mut self.commands, 0).or_else(|_| create(&mut self.commands, ID)) {
            return Joined::untried(error);
        }
        loop {
            for event in self.events.take().0 {
                if event.token != connection.token || own(event.local) {
                    continue; // another connection, or the first subflow
                }
                match (event.kind, event.reset, event.error) {
                    (EventKind::SubflowEstablished, _, _) => return Joined { outcome: "joined", reason: None },
                    (EventKind::SubflowClosed, Some(code), _) if code != 0 => {
                        return Joined { outcome: "refused", reason: Some(reset_reason(code).into()) };
                    }
                    (EventKind::SubflowClosed, _, error) => {
                        let reason = error.map(|e| io::Error::from_raw_os_error(e).to_string());
                        return Joined { outcome: "refused", reason };
                    }
                    _ => {}
                }
            }
            match poll::readable(self.events.as_fd(), until) {
                Ok(true) => {}
                Ok(false) => return Joined { outcome: "silent", reason: Some("no answer".into()) },
                Err(error) => return Joined::untried(error),
            }
        }
    }
}
