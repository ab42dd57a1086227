//! One real-time thread for a group of links that packets share: it reads the devices, lets `pathcast-link` decide in
//! virtual time, and writes each packet when its modelled time has come.
//!
//! Departures chain from the model, not from wake-ups, so that a late wake-up delays the packets it releases but never
//! slows the link down. How late they were is counted per packet.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use pathcast_link::{LinkId, Params};

use crate::error::EmuError;
use crate::ledger::GroupLedger;
use crate::orders::{Order, Plan, Restart};
use crate::worker::Worker;

/// A running group; dropped, its thread ends and its devices disappear.
pub struct Group {
    orders: Sender<Order>,
    bell: OwnedFd,
    thread: Option<JoinHandle<()>>,
    links: String,
}

impl Group {
    /// Starts the thread.
    pub fn start(plan: Plan) -> Result<Group, EmuError> {
        let failed = |e: io::Error| EmuError::Setup { what: "the emulator's thread".into(), why: e.to_string() };
        // SAFETY: eventfd returns a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: a descriptor that nobody else owns.
        let bell = unsafe { OwnedFd::from_raw_fd(fd) };
        let heard = bell.try_clone().map_err(failed)?;
        let (orders, inbox) = channel();
        let links = plan.links.iter().map(|l| l.1.as_str()).collect::<Vec<_>>().join(", ");
        let thread = std::thread::Builder::new()
            .name("pathcast-link".into())
            .spawn(move || Worker::new(plan).run(&inbox, heard.as_raw_fd()))
            .map_err(failed)?;
        Ok(Group { orders, bell, thread: Some(thread), links })
    }

    fn send(&self, order: Order) -> Result<(), EmuError> {
        self.orders.send(order).map_err(|_| self.gone())?;
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes from a live array; a full counter already wakes the thread.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), 8) };
        Ok(())
    }

    fn gone(&self) -> EmuError {
        EmuError::Thread { links: self.links.clone(), why: "it no longer answers".into() }
    }

    /// Changes a link from now on; `later` is as in [`Order::Set`].
    pub fn set(&self, link: LinkId, params: Params, later: Vec<Params>) -> Result<(), EmuError> {
        self.send(Order::Set { link, params, later })
    }

    /// Begins the scenario's time anew; what is on its way stays on its way, and counters go on.
    pub fn restart(&self, restart: Restart) -> Result<(), EmuError> {
        self.send(Order::Restart(restart))
    }

    /// What the links did so far; `reset` starts the release errors afresh.
    pub fn ledger(&self, reset: bool) -> Result<GroupLedger, EmuError> {
        let (reply, answer) = channel();
        self.send(Order::Ledger { reset, reply })?;
        answer.recv_timeout(std::time::Duration::from_secs(5)).map_err(|_| self.gone())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.send(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was already printed by the thread
        }
    }
}
