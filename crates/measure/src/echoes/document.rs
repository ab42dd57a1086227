//! What a look gives, as JSON. Sizes count IP bytes.

use serde::Serialize;

/// What became of it, as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    /// `answered`, `silent`, `refused`, `busy`, `other-version` or `lost`.
    pub outcome: &'static str,
    pub message: Option<String>,
    /// Answers to small packets without marks.
    pub plain: u32,
    pub out: Way,
    #[serde(rename = "in")]
    pub back: Way,
    pub rtt_s: Option<f64>,
    pub clock: Clock,
}

/// One direction.
#[derive(Debug, Default, Serialize)]
pub(super) struct Way {
    /// The largest packet that was tried, and the largest that passed [IP bytes]; none: none was tried, or none passed.
    pub largest: Option<u16>,
    pub passes: Option<u16>,
    pub marks: Vec<Mark>,
}

/// What became of packets of one traffic class.
#[derive(Debug, Serialize)]
pub(super) struct Mark {
    pub sent: u8,
    pub asked: u32,
    /// The classes of those that came.
    pub came: Vec<u8>,
}

/// The far end's clock less this one.
#[derive(Debug, Serialize)]
pub(super) struct Clock {
    /// Both ends say that theirs is disciplined, and the exchanges do not contradict; or they have the same.
    pub synchronised: bool,
    pub offset_s: Option<f64>,
    pub error_s: Option<f64>,
    pub skew_ppm: Option<f64>,
}
