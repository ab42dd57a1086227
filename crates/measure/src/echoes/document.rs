//! What a look gives, as JSON. Sizes count IP bytes.

use serde::Serialize;

use super::super::messages::ClockInfo;
use super::super::request::Direction;
use super::super::times::Times;
use super::search::{Question, Search};

/// What became of it, as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    /// `answered`, `silent`, `refused`, `busy`, `other-version` or `lost`.
    pub outcome: &'static str,
    pub message: Option<String>,
    /// Answers to small packets without marks.
    pub plain: u32,
    /// What the path loses of small packets without marks.
    pub small: Small,
    pub out: Way,
    #[serde(rename = "in")]
    pub back: Way,
    pub rtt_s: Option<f64>,
    pub clock: Clock,
}

/// Round trips of small packets that went in an even pace. What was asked after the last answer is not counted: its own may
/// be on its way.
#[derive(Debug, Serialize)]
pub(super) struct Small {
    pub asked: u32,
    pub answered: u32,
}

/// One direction.
#[derive(Debug, Default, Serialize)]
pub(super) struct Way {
    /// The largest packet that was tried, and the largest that passed [IP bytes]; none: none was tried, or none passed.
    pub largest: Option<u16>,
    pub passes: Option<u16>,
    /// How often the largest was sent.
    pub asked: u32,
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

impl Way {
    pub fn of(way: Direction, search: Option<&Search>, told: &[Question]) -> Way {
        let marked = told.iter().filter(|q| q.way == way && q.class != 0);
        let came = |q: &Question| q.came.iter().map(|&(_, class)| class).collect();
        let largest = search.map(|search| search.largest);
        let large = told.iter().filter(|q| q.way == way && q.class == 0 && Some(q.size) == largest);
        Way {
            largest,
            asked: large.map(|q| q.asked).sum(),
            passes: search.and_then(|search| search.passes),
            marks: marked.map(|q| Mark { sent: q.class, asked: q.asked, came: came(q) }).collect(),
        }
    }
}

impl Clock {
    /// By the exchanges and what both ends say of their clocks; without an exchange nothing is known.
    pub fn of(times: &Times, ours: ClockInfo, theirs: ClockInfo) -> Clock {
        let (clocks, proven) = (times.compare(ours, theirs), times.is_proven());
        Clock {
            synchronised: clocks.synchronised && proven,
            offset_s: clocks.offset.filter(|_| proven).map(|ns| ns / 1e9),
            error_s: clocks.error().filter(|_| proven).map(|ns| ns as f64 / 1e9),
            skew_ppm: clocks.skew.map(|skew| skew * 1e6),
        }
    }
}
