//! What a transfer reports on the way.

use pathcast_base::SubflowReport;

/// A transfer on its way, at every sample and whenever a subflow comes or goes.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Since connect() [s].
    pub elapsed_s: f64,
    /// Application bytes that the far end has acknowledged.
    pub bytes_acked: u64,
    /// Application bytes altogether.
    pub bytes: u64,
    /// The flows so far.
    pub subflows: &'a [SubflowReport],
}
