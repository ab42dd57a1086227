//! What the socket maker says of a connection before it begins, to whoever tells a steered network of its flows: the program
//! waits for the answer in its connect(2), so that the first packet takes the path that it is to take.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// An answer is waited for so long; then it begins where the network lets it [ms].
const PATIENCE_MS: libc::c_int = 6000;
/// A number, then of each end the address and the port.
const LENGTH: usize = 8 + 2 * 18;

/// Of one end: an IPv6 address, and the port.
pub(crate) type End = ([u8; 16], u16);

/// Says that a connection between these ends, local and remote, is about to begin, and waits until that has been done which is to
/// be done before. Nobody hears of it, or answers in time: it begins all the same. Only system calls. `number`: tells calls apart.
pub(crate) fn tell(channel: RawFd, number: u64, ends: [End; 2]) {
    let mut message = [0u8; LENGTH];
    message[..8].copy_from_slice(&number.to_ne_bytes());
    for (at, (address, port)) in ends.into_iter().enumerate() {
        message[8 + 18 * at..][..16].copy_from_slice(&address);
        message[24 + 18 * at..][..2].copy_from_slice(&port.to_ne_bytes());
    }
    // SAFETY: buffers of ours with their lengths
    unsafe {
        if libc::send(channel, message.as_ptr().cast(), LENGTH, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) < 0 {
            return; // the run has ended
        }
        loop {
            let mut poll = libc::pollfd { fd: channel, events: libc::POLLIN, revents: 0 };
            if libc::poll(&mut poll, 1, PATIENCE_MS) <= 0 {
                return;
            }
            let mut answer = 0u64;
            let n = libc::recv(channel, (&raw mut answer).cast(), size_of_val(&answer), libc::MSG_DONTWAIT);
            // an older one was not waited for any more
            if n != size_of_val(&answer) as isize || answer == number {
                return;
            }
        }
    }
}

/// One that has been told of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    number: u64,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// The next one, of those that wait; none: nothing will come any more.
///
/// # Errors
/// WouldBlock where none waits; the system's.
pub(crate) fn next(channel: &OwnedFd) -> io::Result<Option<Beginning>> {
    let mut message = [0u8; LENGTH];
    // SAFETY: a buffer of ours with its length
    match unsafe { libc::recv(channel.as_raw_fd(), message.as_mut_ptr().cast(), LENGTH, libc::MSG_DONTWAIT) } {
        n if n < 0 => return Err(io::Error::last_os_error()),
        n if n != LENGTH as isize => return Ok(None),
        _ => {}
    }
    let end = |at: usize| {
        let octets: [u8; 16] = message[at..][..16].try_into().expect("16 bytes");
        let port = u16::from_ne_bytes(message[at + 16..][..2].try_into().expect("2 bytes"));
        SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), port)
    };
    let number = u64::from_ne_bytes(message[..8].try_into().expect("8 bytes"));
    Ok(Some(Beginning { number, local: end(8), remote: end(26) }))
}

/// It may begin.
pub(crate) fn answer(channel: &OwnedFd, beginning: &Beginning) {
    let number = beginning.number.to_ne_bytes();
    // SAFETY: a buffer of ours with its length; whoever has ended waits no more
    unsafe {
        libc::send(channel.as_raw_fd(), number.as_ptr().cast(), number.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::maker::pair;

    #[test]
    fn whoever_tells_waits_for_the_answer_to_its_own() {
        let (ours, theirs) = pair().unwrap();
        assert_eq!(next(&ours).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3];
        let mut v6 = [0; 16];
        (v6[0], v6[15]) = (0xfd, 1);
        thread::scope(|scope| {
            let teller = scope.spawn(|| tell(theirs.as_raw_fd(), 7, [(v4, 40_000), (v6, 5275)]));
            let beginning = loop {
                match next(&ours) {
                    Ok(found) => break found.unwrap(),
                    Err(_) => thread::yield_now(),
                }
            };
            let (local, remote) = ("10.1.2.3:40000".parse().unwrap(), "[fd00::1]:5275".parse().unwrap());
            assert_eq!(beginning, Beginning { number: 7, local, remote });
            answer(&ours, &Beginning { number: 6, local, remote });
            assert!(!teller.is_finished(), "that was another's");
            answer(&ours, &beginning);
            teller.join().unwrap();
        });
        drop(ours);
        tell(theirs.as_raw_fd(), 8, [(v4, 1), (v6, 2)]); // at once
    }

    #[test]
    fn the_maker_that_has_ended_is_seen() {
        let (ours, theirs) = pair().unwrap();
        drop(theirs);
        assert_eq!(next(&ours).unwrap(), None);
    }
}
