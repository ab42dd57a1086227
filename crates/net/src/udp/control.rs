//! Control messages of sendmsg and recvmsg (cmsg(3)): written into a buffer, and read from what the kernel wrote.

use std::marker::PhantomData;
use std::ptr;

/// Room for control messages, aligned as their headers must be.
#[derive(Clone)]
#[repr(C, align(8))]
pub(crate) struct Room<const N: usize>(pub [u8; N]);

/// Control messages one after the other.
pub(crate) struct Writer<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl<'a> Writer<'a> {
    pub fn new<const N: usize>(room: &'a mut Room<N>) -> Writer<'a> {
        Writer { room: &mut room.0, used: 0 }
    }

    /// Adds one; `T` is what the kernel expects there.
    ///
    /// # Panics
    /// If there is no room for it.
    pub fn push<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
        let size = size_of::<T>() as u32;
        // SAFETY: pure computations
        let (space, length) = unsafe { (libc::CMSG_SPACE(size) as usize, libc::CMSG_LEN(size) as usize) };
        let place = &mut self.room[self.used..self.used + space];
        place.fill(0); // so that the room between two messages is defined
        // SAFETY: zeros are a valid header; the place has CMSG_SPACE bytes, which hold it and after it, aligned, the value
        unsafe {
            // of other C libraries it has more fields
            let mut header: libc::cmsghdr = std::mem::zeroed();
            (header.cmsg_len, header.cmsg_level, header.cmsg_type) = (length as _, level, kind);
            let at = place.as_mut_ptr().cast::<libc::cmsghdr>();
            ptr::write_unaligned(at, header);
            ptr::write_unaligned(libc::CMSG_DATA(at).cast::<T>(), value);
        }
        self.used += space;
    }

    /// Bytes written.
    pub fn used(&self) -> usize {
        self.used
    }
}

/// The control messages of a received message.
pub(crate) struct Messages<'a> {
    header: *const libc::msghdr,
    next: *const libc::cmsghdr,
    lives: PhantomData<&'a [u8]>,
}

/// One control message.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub level: i32,
    pub kind: i32,
    pub data: &'a [u8],
}

impl<'a> Messages<'a> {
    /// # Safety
    /// The kernel has filled `header`, and the buffer of its control messages lives as long as this.
    pub unsafe fn of(header: &'a libc::msghdr) -> Messages<'a> {
        // SAFETY: as the caller promises
        let next = unsafe { libc::CMSG_FIRSTHDR(header) };
        Messages { header, next, lives: PhantomData }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: the kernel writes whole messages, and CMSG_NXTHDR stays within the buffer
        unsafe {
            let at = self.next;
            self.next = libc::CMSG_NXTHDR(self.header, at);
            let libc::cmsghdr { cmsg_len, cmsg_level, cmsg_type, .. } = ptr::read_unaligned(at);
            #[allow(clippy::unnecessary_cast)] // musl has 32 bits of it
            let length = (cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(at), length);
            Some(Message { level: cmsg_level, kind: cmsg_type, data })
        }
    }
}

impl Message<'_> {
    /// The value, if the message is as long as one.
    ///
    /// # Safety
    /// Every pattern of bits must be a `T`.
    pub unsafe fn value<T: Copy>(&self) -> Option<T> {
        // SAFETY: there are enough bytes, and any of them make a `T`
        (self.data.len() >= size_of::<T>()).then(|| unsafe { ptr::read_unaligned(self.data.as_ptr().cast()) })
    }

    /// An integer of four bytes, or of one as some are told.
    pub fn number(&self) -> i32 {
        match self.data {
            [one] => i32::from(*one),
            &[a, b, c, d, ..] => i32::from_ne_bytes([a, b, c, d]),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut room = Room([0xff; 128]);
        let mut writer = Writer::new(&mut room);
        writer.push(libc::IPPROTO_IP, libc::IP_TOS, 184i32);
        writer.push(libc::SOL_SOCKET, 77, 5u8);
        let used = writer.used();
        // SAFETY: zeros are valid
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = room.0.as_mut_ptr().cast();
        header.msg_controllen = used as _;
        // SAFETY: filled above, as the kernel would
        let read: Vec<_> = unsafe { Messages::of(&header) }.map(|m| (m.level, m.kind, m.number())).collect();
        assert_eq!(read, [(libc::IPPROTO_IP, libc::IP_TOS, 184), (libc::SOL_SOCKET, 77, 5)]);
    }
}
