//! The thread of one connection: carries bytes and time to its machine and back.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pathcast_base::Nanos;
use pathcast_probe::session::Connection;
use socket2::Socket;

use super::Shared;
use crate::poll;

/// How much is read at once [byte].
const CHUNK: usize = 256 << 10;
/// Enough for every message.
const SMALL: usize = 4 << 10;

pub(super) fn serve(shared: &Shared, socket: &Socket, mut connection: Connection) {
    // errors are the end of this connection and of nothing else
    let _ = talk(shared, socket, &mut connection);
    connection.end(&mut shared.service());
    shared.tell_notes();
    shared.open().remove(&connection.id());
}

fn talk(shared: &Shared, socket: &Socket, connection: &mut Connection) -> io::Result<()> {
    let mut buffer = vec![0; SMALL];
    let mut unsent = Vec::new();
    loop {
        unsent.append(&mut connection.output());
        let closing = connection.closing();
        let deadline = connection.deadline(&shared.service());
        if shared.now() >= deadline {
            connection.expire(shared.now(), &mut shared.service());
            shared.tell_notes();
            if connection.closing() && shared.now() >= connection.deadline(&shared.service()) {
                return Ok(());
            }
            continue;
        }
        let events = if unsent.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
        let mut fds = [poll::want(socket.as_fd(), events)];
        poll::wait(&mut fds, at(shared, deadline))?;
        let ready = fds[0].revents;
        if ready & libc::POLLOUT != 0 && !unsent.is_empty() {
            match socket.send_with_flags(&unsent, libc::MSG_NOSIGNAL) {
                Ok(n) => drop(unsent.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        if ready & !libc::POLLOUT == 0 {
            continue;
        }
        if connection.receiving() && buffer.len() < CHUNK {
            buffer.resize(CHUNK, 0);
        }
        let n = match (&*socket).read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(e) => return Err(e),
        };
        if closing {
            continue; // what comes after the last word is read so that the word itself is not lost to a reset
        }
        let now = shared.now();
        if connection.receiving() {
            if connection.absorb(now, n as u64) {
                connection.settle(now, &mut shared.service());
                shared.tell_notes();
            }
        } else {
            connection.receive(now, &buffer[..n], &mut shared.service());
            shared.tell_notes();
        }
    }
}

fn at(shared: &Shared, deadline: Nanos) -> Instant {
    // a day is as good as never, and cannot overflow
    let day = Nanos::secs(86_400);
    let left = Nanos(deadline.saturating_sub(shared.now()).0.min(day.0));
    Instant::now() + Duration::from_nanos(left.0)
}
