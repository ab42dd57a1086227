//! The calls of connect(2) that wait, each with its own time: none holds up another one, nor any socket(2). Only system calls, no
//! allocation, as in `forked`.

use std::mem::zeroed;
use std::os::fd::RawFd;

use crate::lines::{Lines, Verdict};
use crate::race::{Begun, ENTRANTS, Race};

/// Calls at once; whoever finds no room is not waited with.
const ROOM: usize = 64;
/// Of those who wait for an answer.
pub(crate) const POLLS: usize = ROOM * ENTRANTS;

struct Call {
    call: libc::seccomp_notif,
    to: [u8; 16],
    /// None: it waits for what another one finds of the same far end.
    race: Option<Race>,
}

pub(crate) struct Waiting {
    listener: RawFd,
    pub lines: Lines,
    calls: [Option<Call>; ROOM],
}

impl Waiting {
    pub fn new(listener: RawFd, lines: Lines) -> Waiting {
        Waiting { listener, lines, calls: [const { None }; ROOM] }
    }

    /// Writes down whose answers are awaited, and counts them.
    pub fn polls(&self, polls: &mut [libc::pollfd]) -> usize {
        let awaited = self.calls.iter().flatten().filter_map(|call| call.race.as_ref()).flat_map(Race::polls);
        polls.iter_mut().zip(awaited).map(|(to, poll)| *to = poll).count()
    }

    /// How long there is nothing to do unless somebody answers, as poll(2) takes it.
    pub fn left(&self) -> libc::c_int {
        let of = |call: &Call| match &call.race {
            Some(race) => race.left_ms() as libc::c_int,
            None if busy(&self.calls, &call.to) => libc::c_int::MAX,
            None => 0,
        };
        self.calls.iter().flatten().map(of).min().unwrap_or(-1)
    }

    /// Does what is due. `socket` makes a socket of a family and a type where a task is.
    pub fn go_on(&mut self, socket: impl Fn(u32, libc::c_int, libc::c_int) -> RawFd) {
        for at in 0..ROOM {
            let Some(call) = &mut self.calls[at] else { continue };
            let valid = waits(self.listener, &call.call);
            let Some(race) = &mut call.race else {
                let (call, to) = (call.call, call.to);
                if !valid || !busy(&self.calls, &to) {
                    self.calls[at] = None;
                    self.begin(&call, &socket);
                }
                continue;
            };
            // of one that has been interrupted the socket is the program's alone again
            let verdict = if valid {
                race.go_on(&mut self.lines, |domain, kind| socket(call.call.pid, domain, kind))
            } else {
                Some(Verdict::Continue)
            };
            if let Some(verdict) = verdict {
                end(self.listener, &call.call, race, verdict);
                self.calls[at] = None;
            }
        }
    }

    /// Of a call that has just come.
    pub fn begin(&mut self, call: &libc::seccomp_notif, socket: impl Fn(u32, libc::c_int, libc::c_int) -> RawFd) {
        let Waiting { listener, lines, calls } = self;
        let room = calls.iter().position(Option::is_none);
        let socket = |domain, kind| socket(call.pid, domain, kind);
        let busy = |to: &[u8; 16]| room.is_some() && busy(calls, to);
        // SAFETY: the arguments are those of such a call
        let (begun, to) = unsafe { lines.connect(call.pid, &call.data.args, || waits(*listener, call), busy, socket) };
        match (begun, room) {
            (Begun::Now(verdict), _) => answer(self.listener, call, verdict),
            (Begun::Waits(mut race), room) => {
                let verdict = race.go_on(&mut self.lines, socket);
                match (verdict, room) {
                    (None, Some(room)) => self.calls[room] = Some(Call { call: *call, to, race: Some(race) }),
                    (verdict, _) => {
                        let verdict = verdict.unwrap_or_else(|| race.give_up(&mut self.lines));
                        end(self.listener, call, &mut race, verdict);
                    }
                }
            }
            (Begun::Behind, Some(room)) => self.calls[room] = Some(Call { call: *call, to, race: None }),
            (Begun::Behind, None) => answer(self.listener, call, Verdict::Continue),
        }
    }
}

/// Is somebody finding out about this far end?
fn busy(calls: &[Option<Call>; ROOM], to: &[u8; 16]) -> bool {
    calls.iter().flatten().any(|call| call.race.is_some() && call.to == *to)
}

/// Does the caller still wait?
pub(crate) fn waits(listener: RawFd, call: &libc::seccomp_notif) -> bool {
    // SAFETY: the pointer is to a number
    unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &raw const call.id) == 0 }
}

fn end(listener: RawFd, call: &libc::seccomp_notif, race: &mut Race, verdict: Verdict) {
    race.release();
    // SAFETY: ours since the call came
    unsafe { libc::close(race.fd) };
    answer(listener, call, verdict);
}

pub(crate) fn answer(listener: RawFd, call: &libc::seccomp_notif, verdict: Verdict) {
    // SAFETY: zeros are a valid reply, to which the pointer is; who waits no more gets none
    unsafe {
        let mut reply: libc::seccomp_notif_resp = zeroed();
        reply.id = call.id;
        match verdict {
            Verdict::Continue => reply.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as _,
            Verdict::Done(error) => reply.error = -error,
        }
        libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND as _, &mut reply);
    }
}
