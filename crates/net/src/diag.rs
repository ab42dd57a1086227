//! A TCP socket of this network stack, found by its ends (NETLINK_SOCK_DIAG, as `ss` asks).

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use crate::info::{TCP_CLOSE, TCP_ESTABLISHED};
use crate::maker::SocketMaker;
use crate::netlink::{self, Request};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// struct inet_diag_msg is so long.
const MESSAGE: usize = 72;
/// Extension: struct tcp_info, with which that of Multipath TCP comes.
const INFO: u8 = 1 << 1;
const TCP_TIME_WAIT: u8 = 6;
const ULP_INFO: u16 = 19;
const ULP_INFO_MPTCP: u16 = 3;
const TOKEN_LOCAL: u16 = 2;

/// A socket that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub established: bool,
    /// Of its connection of Multipath TCP.
    pub token: Option<u32>,
}

/// The socket between these ends; None: there is none any more.
///
/// # Errors
/// The system's. Tokens are told with CAP_NET_ADMIN only.
pub(crate) fn find(maker: &dyn SocketMaker, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Found>> {
    let fd = maker.netlink_diag()?;
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // struct inet_diag_req_v2: family, protocol, extensions, padding, states, then the socket: ports, addresses, interface, cookie
    let mut head = vec![family as u8, libc::IPPROTO_TCP as u8, INFO, 0];
    head.extend(u32::MAX.to_ne_bytes());
    head.extend([local, remote].iter().flat_map(|end| end.port().to_be_bytes()));
    for end in [local, remote] {
        let mut address = netlink::octets(end.ip());
        address.resize(16, 0);
        head.extend(address);
    }
    head.extend([0; 4]);
    head.extend([0xff; 8]); // any
    let request = Request::new(SOCK_DIAG_BY_FAMILY, libc::NLM_F_ACK, &head);
    match netlink::ask(fd.as_fd(), request, 1) {
        Ok(answer) => Ok(read(&answer)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn read(answer: &[u8]) -> Option<Found> {
    let &state = answer.get(1)?;
    if matches!(state, TCP_CLOSE | TCP_TIME_WAIT) {
        return None;
    }
    let inside = |bytes, wanted| netlink::attributes(bytes).find(|&(kind, _)| kind == wanted).map(|(_, value)| value);
    let token = || {
        let mptcp = inside(inside(answer.get(MESSAGE..)?, ULP_INFO)?, ULP_INFO_MPTCP)?;
        inside(mptcp, TOKEN_LOCAL)?.try_into().ok().map(u32::from_ne_bytes)
    };
    Some(Found { established: state == TCP_ESTABLISHED, token: token() })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use pathcast_base::Protocol;

    use super::*;
    use crate::info;
    use crate::maker::{Family, HostSockets};

    #[test]
    fn a_socket_is_found_by_its_ends_while_it_is_there() {
        for (listen, family) in [("127.0.0.1:0", Family::V4), ("[::1]:0", Family::V6)] {
            let Ok(listener) = TcpListener::bind(listen) else {
                println!("SKIPPED: a_socket_is_found_by_its_ends_while_it_is_there: {listen}: no IPv6 here");
                continue;
            };
            let remote = listener.local_addr().unwrap();
            let socket = HostSockets.tcp(family, Protocol::Tcp).unwrap();
            socket.connect(&remote.into()).unwrap();
            let local = socket.local_addr().unwrap().as_socket().unwrap();
            let found = Found { established: true, token: None };
            assert_eq!(find(&HostSockets, local, remote).unwrap(), Some(found));
            drop((socket, listener)); // what waits to be accepted is reset
            assert_eq!(find(&HostSockets, local, remote).unwrap(), None);
        }
    }

    #[test]
    fn a_subflow_tells_the_token_of_its_connection() {
        let sockets = [(); 2].map(|()| HostSockets.tcp(Family::V4, Protocol::Mptcp));
        let [Ok(listener), Ok(socket)] = sockets else {
            println!("SKIPPED: a_subflow_tells_the_token_of_its_connection: needs MPTCP");
            return;
        };
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(1).unwrap();
        socket.connect(&listener.local_addr().unwrap()).unwrap();
        let [local, remote] = [socket.local_addr(), socket.peer_addr()].map(|end| end.unwrap().as_socket().unwrap());
        let found = find(&HostSockets, local, remote).unwrap().unwrap();
        let told = info::mptcp(&socket).unwrap().map(|info| info.token);
        if found.token.is_none() {
            println!("SKIPPED: a_subflow_tells_the_token_of_its_connection: needs CAP_NET_ADMIN");
            return;
        }
        assert_eq!((found.established, found.token), (true, told));
    }
}
