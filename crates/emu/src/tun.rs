//! TUN and TAP devices with checksum and segmentation offload.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::packet::VNET;

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUN_F_CSUM: libc::c_uint = 0x01;
const TUN_F_TSO4: libc::c_uint = 0x02;
const TUN_F_TSO6: libc::c_uint = 0x04;
const TUN_F_TSO_ECN: libc::c_uint = 0x08;

/// What a device's frames begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// TUN: the IP packet.
    Ip,
    /// TAP: an Ethernet header.
    Ethernet,
    /// The same, of a port of Open vSwitch, which forgets how large a super-packet's segments are (`packet::restore`).
    Switch,
}

impl Layer {
    /// Bytes in front of the IP packet.
    pub fn bytes(self) -> usize {
        match self {
            Layer::Ip => 0,
            Layer::Ethernet | Layer::Switch => 14,
        }
    }

    fn flag(self) -> libc::c_int {
        match self {
            Layer::Ip => libc::IFF_TUN,
            Layer::Ethernet | Layer::Switch => libc::IFF_TAP,
        }
    }
}

/// An open TUN or TAP device; it disappears with this value.
pub struct Tun {
    file: File,
    layer: Layer,
}

impl Tun {
    /// Makes the device `name` in the network namespace of the calling thread.
    pub fn create(name: &str, layer: Layer) -> io::Result<Tun> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("device name `{name}` is too long")));
        }
        // SAFETY: ifreq is plain data; all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (layer.flag() | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &mut request) })?;
        let offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, libc::c_ulong::from(offload)) })?;
        Ok(Tun { file, layer })
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// The descriptor, to poll.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads one frame into `buffer`; `None` when there is none now, 0 of one without content.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the buffer is valid for writes of its length.
        let n = unsafe { libc::read(self.fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match check(n as libc::c_int) {
            Ok(_) if (n as usize) <= VNET + self.layer.bytes() => Ok(Some(0)),
            Ok(_) => Ok(Some(n as usize)),
            Err(e) if e.kind() == ErrorKind::WouldBlock || e.kind() == ErrorKind::Interrupted => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes one frame that lies in two pieces.
    pub fn write(&self, head: &[u8], rest: &[u8]) -> io::Result<()> {
        let pieces = [
            libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: head.len() },
            libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() },
        ];
        // SAFETY: both pieces are valid for reads; writev does not write through them.
        check(unsafe { libc::writev(self.fd(), pieces.as_ptr(), 2) } as libc::c_int).map(|_| ())
    }
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
