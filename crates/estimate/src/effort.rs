//! How much a measurement may ask of a path.

use pathcast_base::Nanos;

/// What is looked for, and what it may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// As little as can be: [`Effort::LIGHT_BYTES`] a path and round, all bytes of both directions and ends counted.
    Light,
    /// What the capacity asks for ([`Budget::sensible`](crate::Budget::sensible)).
    #[default]
    Usual,
    /// Up to [`Effort::THOROUGH_TIME`] a direction; it looks for losses and for the depth of the queue too.
    Thorough {
        /// The longest queue that it may build.
        queue: Nanos,
    },
}

impl Effort {
    /// 1 GB in 30 days at one round every five minutes: 10^9 / 8640 [IP byte], less what a goodbye that is lost may cost.
    pub const LIGHT_BYTES: u64 = 115_700;
    /// From a direction's first train to its last report, unless more is allowed.
    pub const THOROUGH_TIME: Nanos = Nanos::secs(10);
    /// What is built of a queue without being asked for more.
    pub const QUEUE: Nanos = Nanos::millis(500);
}
