//! The payloads of the machines' packets on their way, in places that are used again. Other packets need not carry room
//! for them.

/// What a packet carries for a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payload {
    /// The session's slot, and which user of the slot.
    pub session: u32,
    pub generation: u32,
    /// Number of the host that it goes to.
    pub to: usize,
    /// Path, as the session counts.
    pub path: usize,
    pub dscp: u8,
    pub ecn: u8,
    /// How the payload begins; the rest is zero.
    pub head: Vec<u8>,
}

/// Payloads by their places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payloads {
    slots: Vec<Payload>,
    free: Vec<u32>,
}

impl Payloads {
    /// A free place. What was there before is still there: only its room is of use.
    pub(crate) fn place(&mut self) -> (u32, &mut Payload) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Payload::default());
            self.slots.len() as u32 - 1
        });
        (at, &mut self.slots[at as usize])
    }

    pub(crate) fn get(&self, at: u32) -> &Payload {
        &self.slots[at as usize]
    }

    /// The packet has arrived or was dropped.
    pub(crate) fn release(&mut self, at: u32) {
        self.free.push(at);
    }

    /// Payloads that packets still refer to.
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Places that were ever needed at once.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }
}
