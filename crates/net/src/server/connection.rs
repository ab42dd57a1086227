//! The thread of one connection: carries bytes and time to its machine and back.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use pathcast_base::Nanos;
use pathcast_session::{Connection, ECHO, HEARS, Seen};
use socket2::Socket;

use super::{ServerEvent, Shared};
use crate::forward;
use crate::info::{self, SubflowInfo};
use crate::look;
use crate::path_manager;
use crate::poll;

/// How much payload is read at once [byte], over and over into a buffer of this size: nobody looks at it, and many connections
/// cost a router's memory.
const CHUNK: usize = 256 << 10;
const BUFFER: usize = 16 << 10;
/// Payload is waited for in pieces of about so much time, up to so many bytes: a waking a segment would cost more than all
/// else that is done here.
const PIECE_TIME: Nanos = Nanos::millis(2);
const LARGEST_PIECE: u64 = CHUNK as u64;
/// Less than a piece wakes nobody: so often it is looked for, or a transfer that has become slow would seem to stand still.
const LESS: Nanos = Nanos::secs(1);
/// Most that is asked for, where the system says no less: two paths of 1 Gbit/s and 180 ms hold 45 MB.
const ROOM: u64 = 64 << 20;
/// Subflows that a connection has at once in Linux, beside the first.
const MANY: usize = 8;
/// Time between two looks at which subflows have joined.
const LOOK: Nanos = Nanos::millis(20);
/// What waits to be sent before nothing more is read [byte].
const UNSENT: usize = 64 << 10;
/// Enough for every message.
const SMALL: usize = 4 << 10;

pub(super) fn serve(shared: &Shared, socket: &Socket, mut connection: Connection) {
    // errors are the end of this connection and of nothing else
    let _ = talk(shared, socket, &mut connection);
    connection.end(&mut shared.service());
    shared.tell_notes();
    shared.open().remove(&connection.id());
}

/// Reads up to [`CHUNK`] bytes, of which the last ones stay in the buffer.
fn discard(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let parts = [part; CHUNK / BUFFER];
    // SAFETY: every part is this buffer with its length; the kernel alone writes to it, one part after the other
    let read = unsafe { libc::readv(socket.as_raw_fd(), parts.as_ptr(), parts.len() as libc::c_int) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

fn talk(shared: &Shared, socket: &Socket, connection: &mut Connection) -> io::Result<()> {
    let mut buffer = vec![0; SMALL];
    let mut unsent = Vec::new();
    let plain = socket.protocol().is_ok_and(|p| p == Some(socket2::Protocol::TCP));
    let mut room = Room::default();
    let mut pieces = Pieces { size: 1, since: None, received: 0 };
    loop {
        if plain {
            pieces.adapt(socket, connection.awaited(), shared.now());
        } else if connection.receiving() {
            room.make(socket, shared.room, shared.now());
        }
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
        // who does not listen is not listened to
        let hears = if unsent.len() < UNSENT { libc::POLLIN } else { 0 };
        let events = if unsent.is_empty() { hears } else { hears | libc::POLLOUT };
        let mut fds = [poll::want(socket.as_fd(), events)];
        let looks = hears != 0 && connection.receiving() && pieces.size > 1;
        let until = if looks { deadline.min(shared.now() + LESS) } else { deadline };
        poll::wait(&mut fds, at(shared, until))?;
        let ready = fds[0].revents;
        if ready & libc::POLLOUT != 0 && !unsent.is_empty() {
            match socket.send_with_flags(&unsent, libc::MSG_NOSIGNAL) {
                Ok(n) => drop(unsent.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        if ready & !libc::POLLOUT == 0 && !looks {
            continue;
        }
        let read = if connection.receiving() {
            buffer.resize(BUFFER, 0);
            discard(socket, &mut buffer)
        } else {
            (&*socket).read(&mut buffer)
        };
        let n = match read {
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
            pieces.received += n as u64;
            if connection.absorb(now, n as u64) {
                connection.settle(now, &mut shared.service());
                shared.tell_notes();
            }
        } else {
            connection.receive(now, &buffer[..n], &mut shared.service());
            if connection.is_asked() {
                let able = look::able(&*shared.maker, shared.mptcp);
                let joins = path_manager::limits(&*shared.maker).ok().map(|limits| limits.subflows.min(255) as u8);
                let seen = look::seen(socket, able);
                connection.show(&Seen { stamp_port: shared.stamp_port, knows: Some(ECHO | HEARS), joins, ..seen });
            }
            if let Some(theirs) = connection.take_told() {
                let inner = look::seen(socket, 0).local;
                if let (Some(outer), Some(inner)) = (theirs.peer, inner.filter(|_| theirs.peer != inner))
                    && shared.translators().take(outer, inner)
                {
                    shared.tell(&ServerEvent::Warning(forward::translated(outer, inner, shared.stamp_port)));
                }
            }
            shared.tell_notes();
        }
    }
}

/// Gives an MPTCP connection as large a receive buffer as the system allows.
///
/// Seen on Linux 6.18: a buffer that is full of what came early over the fast path takes nothing more, not even the missing
/// piece that waits in the slow path's own queue, and the connection stands still for ever. Automatic tuning starts at
/// 128 KB and cannot help then. Asking for a low-water mark raises the buffer without ending the tuning, up to half of the
/// largest `tcp_rmem`, and needs no privilege.
///
/// What is asked for goes to the subflows that are there, and only if it is more than before; one that joins later begins
/// small, and what comes over it would never widen the window. So more is asked for whenever one has joined, in place of
/// another or not.
#[derive(Default)]
struct Room {
    /// How many have joined so far.
    joined: usize,
    looked: Option<Nanos>,
}

impl Room {
    fn make(&mut self, socket: &Socket, most: u64, now: Nanos) {
        if self.looked.is_some_and(|looked| now < looked + LOOK) {
            return;
        }
        self.looked = Some(now);
        let info = info::mptcp(socket).ok().flatten();
        let joined = info.map_or(1, |info| joined(&info.subflows));
        if joined <= self.joined {
            return;
        }
        self.joined = joined;
        if await_pieces(socket, asked(most, joined) as libc::c_int).is_ok() {
            let _ = await_pieces(socket, 1); // it was settable a moment ago
        }
    }
}

/// How many have joined so far, by those that are there: the kernel numbers them in their order.
fn joined(subflows: &[SubflowInfo]) -> usize {
    let last = subflows.iter().map(|one| one.id as usize).max();
    last.unwrap_or(0).max(subflows.len()).max(1)
}

/// What is asked for once so many have joined: always more, up to `most`.
fn asked(most: u64, joined: usize) -> u64 {
    // half of the rest each time, then ever smaller parts: a line may come and go all day
    let parts = joined.saturating_sub(MANY - 1).max(1) as u64;
    most - (most >> joined.min(MANY)) / parts
}

/// The largest low-water mark by `tcp_rmem`: half of its largest [byte].
pub(super) fn room(tcp_rmem: Option<&str>) -> u64 {
    let largest = tcp_rmem.and_then(|text| text.split_whitespace().nth(2)?.parse::<u64>().ok());
    largest.map_or(ROOM, |bytes| (bytes / 2).clamp(1, ROOM))
}

/// How much payload has to be there before we are woken.
struct Pieces {
    size: u64,
    since: Option<Nanos>,
    received: u64,
}

impl Pieces {
    fn adapt(&mut self, socket: &Socket, awaited: u64, now: Nanos) {
        let elapsed = now.saturating_sub(*self.since.get_or_insert(now)).0.max(1);
        let at_this_rate = (u128::from(self.received) * u128::from(PIECE_TIME.0) / u128::from(elapsed)) as u64;
        let wanted = at_this_rate.min(LARGEST_PIECE).min(awaited).max(1);
        let changed = wanted < self.size || wanted >= 2 * self.size;
        if changed && await_pieces(socket, wanted as libc::c_int).is_ok() {
            self.size = wanted;
        }
    }
}

/// Makes the socket readable only when so many bytes are there.
fn await_pieces(socket: &Socket, bytes: libc::c_int) -> io::Result<()> {
    // SAFETY: the option reads one int, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn at(shared: &Shared, deadline: Nanos) -> Instant {
    // a day is as good as never, and cannot overflow
    let day = Nanos::secs(86_400);
    let left = Nanos(deadline.saturating_sub(shared.now()).0.min(day.0));
    Instant::now() + Duration::from_nanos(left.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::TcpInfo;

    #[test]
    fn the_system_says_how_much() {
        assert_eq!(room(Some("4096\t131072\t33554432")), 16 << 20);
        assert_eq!([room(None), room(Some("no numbers")), room(Some("1 2 999999999999"))], [ROOM; 3]);
    }

    #[test]
    fn every_subflow_that_joins_has_more_asked_for() {
        let most = 16 << 20;
        assert_eq!([1, 2, 3].map(|n| asked(most, n)), [8 << 20, 12 << 20, 14 << 20]);
        assert!((1..250).all(|n| asked(most, n) < asked(most, n + 1) && asked(most, n) < most));
        assert!((1..100).all(|n| asked(3 << 20, n) < asked(3 << 20, n + 1)));
    }

    #[test]
    fn one_that_joins_in_place_of_another_counts() {
        let there = |ids: &[u32]| {
            let one = |&id| SubflowInfo {
                id,
                local: ([10, 0, 0, 1], 5270).into(),
                remote: ([10, 0, 0, 2], 7).into(),
                tcp: TcpInfo::default(),
            };
            joined(&ids.iter().map(one).collect::<Vec<_>>())
        };
        assert_eq!([there(&[]), there(&[1]), there(&[1, 2]), there(&[1, 3])], [1, 1, 2, 3]);
    }
}
