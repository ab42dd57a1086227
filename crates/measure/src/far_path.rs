//! The far end of one path of a session: a sink, a source or both, of a part each, and the repetition of a result until it is
//! noted.

use pathcast_base::Nanos;
use pathcast_estimate::{Budget, Effort};

use super::bucket::Grant;
use super::client_path::HEADERS;
use super::messages::Begin;
use super::report;
use super::room::Share;
use super::sink::Sink;
use super::source::{Left, Source, SourceAction, Spec};
use super::wire::{Channel, Datagram, FRAME, Kind, ProbeHead};
use crate::machine::{Batch, Train};

/// A result is told so often.
const OUTCOME_TRIES: u32 = 8;
/// Between how long the answer to a large packet may take, as the client says.
const WAITS: (Nanos, Nanos) = (Nanos::millis(20), Nanos::secs(5));

/// A result that the client has not noted yet.
struct PendingOutcome {
    part: u8,
    body: Vec<u8>,
    wait: Nanos,
    due: Nanos,
    tries: u32,
}

/// What goes out over the path.
pub(super) enum FarPathAction {
    Train(Train),
    Message(Kind, u8, Vec<u8>),
}

/// See the [module](self).
pub(super) struct FarPath<A> {
    pub address: A,
    /// Where trains beside the path's flow go, if the client has said it.
    pub beside: Option<A>,
    pub channel: Channel,
    /// Of the session's memory.
    share: Share,
    /// The newest part each way; what belongs to an older one is late.
    sunk: u8,
    begun: u8,
    sink: Option<Sink>,
    source: Option<Source>,
    wait: Nanos,
    pending: Option<PendingOutcome>,
}

impl<A> FarPath<A> {
    /// What it keeps is a part of `share`.
    pub fn new(address: A, channel: Channel, share: Share) -> FarPath<A> {
        FarPath {
            address,
            beside: None,
            channel,
            share,
            sunk: 0,
            begun: 0,
            sink: None,
            source: None,
            wait: WAITS.0,
            pending: None,
        }
    }

    /// A probe of the client has come; false if it is nothing new.
    pub fn probe(&mut self, now: Nanos, datagram: &Datagram, at: Nanos, batch: Batch) -> bool {
        let Some(head) = ProbeHead::of(datagram) else { return false };
        self.sink_of(datagram.part);
        let sink = self.sink.as_mut().filter(|_| datagram.part == self.sunk);
        sink.is_some_and(|sink| sink.probe(now, head, at, batch))
    }

    /// The client asks for reports.
    pub fn ask(&mut self, now: Nanos, part: u8, trains: &[u32]) {
        // perhaps not one probe of this part has come
        self.sink_of(part);
        if let Some(sink) = self.sink.as_mut().filter(|_| part == self.sunk) {
            sink.ask(now, trains);
        }
    }

    /// This host had no room for so many packets, of whomever.
    pub fn missed(&mut self, packets: u32) {
        if let Some(sink) = &mut self.sink {
            sink.missed(packets);
        }
    }

    fn sink_of(&mut self, part: u8) {
        if part > self.sunk {
            (self.sunk, self.sink) = (part, Some(Sink::new(&self.share)));
        }
    }

    /// The client wants probes.
    pub fn begin(&mut self, now: Nanos, part: u8, begin: &Begin, limit: Budget, dscp: u8) {
        if let Some(pending) = self.pending.as_mut().filter(|pending| pending.part == part) {
            pending.due = now;
        }
        if part <= self.begun {
            return;
        }
        if matches!(begin.effort, Effort::Thorough { .. }) {
            // it has no other part beside it, and asks for room: of those before all is told
            self.sink = None;
        }
        let budget = Budget { bytes: begin.budget.bytes.min(limit.bytes), time: begin.budget.time.min(limit.time) };
        self.begun = part;
        self.wait = begin.wait.clamp(WAITS.0, WAITS.1);
        self.source = Some(Source::new(
            now,
            Spec {
                session: self.channel.session,
                path: self.channel.path,
                part,
                signer: self.channel.send.clone(),
                method: begin.method,
                budget,
                sparing: begin.sparing,
                effort: begin.effort,
                seed: begin.seed,
                dscp,
                wait: self.wait,
            },
            &self.share,
        ));
    }

    /// The client reports; that came `at` this time.
    pub fn report(&mut self, now: Nanos, at: Nanos, part: u8, body: &[u8]) -> bool {
        let Some(pieces) = report::decode(body) else { return false };
        if let Some(source) = self.source.as_mut().filter(|source| source.part() == part) {
            source.report(now, at, &pieces);
        }
        true
    }

    /// The client has the result.
    pub fn noted(&mut self, part: u8) {
        self.pending.take_if(|pending| pending.part == part);
    }

    /// A probe of ours has left, or never will.
    pub fn left(&mut self, now: Nanos, seq: u64, left: Option<Left>) {
        if let Some(source) = &mut self.source {
            source.left(now, seq, left);
        }
    }

    /// All that came before `until` is told.
    pub fn timer(&mut self, now: Nanos, until: Nanos) {
        if let Some(sink) = &mut self.sink {
            sink.timer(now, until);
        }
    }

    /// What is to be said next, within the granted rate.
    pub fn next(&mut self, now: Nanos, granted: &mut Grant) -> Option<FarPathAction> {
        if let Some(body) = self.sink.as_mut().and_then(Sink::next) {
            return Some(self.beside(Kind::Report, self.sunk, body));
        }
        if let Some(source) = &mut self.source {
            source.has_beside(self.beside.is_some());
            match source.next(now, granted) {
                Some(SourceAction::Train(train)) => return Some(FarPathAction::Train(train)),
                Some(SourceAction::Ask(body)) => {
                    return Some(FarPathAction::Message(Kind::Ask, source.part(), body));
                }
                None => {}
            }
            if let Some(outcome) = source.outcome() {
                let (part, wait) = (source.part(), self.wait);
                self.source = None;
                self.pending = Some(PendingOutcome { part, body: outcome.encode(), wait, due: now, tries: 0 });
            }
        }
        let pending = self.pending.as_mut().filter(|pending| pending.due <= now)?;
        pending.due = now + Nanos(pending.wait.0 << pending.tries.min(4));
        pending.tries += 1;
        let (part, body) = (pending.part, pending.body.clone());
        if pending.tries == OUTCOME_TRIES {
            self.pending = None;
        }
        Some(FarPathAction::Message(Kind::Outcome, part, body))
    }

    /// What goes the same way as the probes, if there are any.
    fn beside(&mut self, kind: Kind, part: u8, body: Vec<u8>) -> FarPathAction {
        if let Some(source) = &mut self.source {
            source.beside((body.len() + FRAME + HEADERS) as u64);
        }
        FarPathAction::Message(kind, part, body)
    }

    /// When [`FarPath::next`] is to be asked again.
    pub fn wake(&self) -> Nanos {
        let sink = self.sink.as_ref().map_or(Nanos::MAX, Sink::wake);
        let source = self.source.as_ref().map_or(Nanos::MAX, Source::wake);
        let pending = self.pending.as_ref().map_or(Nanos::MAX, |pending| pending.due);
        sink.min(source).min(pending)
    }
}

#[cfg(test)]
mod tests;
