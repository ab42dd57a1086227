//! Which subflows of a connection may be given data now, so that it is never slower than over the best of them alone.
//!
//! What a subflow was given leaves it in its own time: a slow one delivers it after all others are done, and until then
//! both ends' buffers fill with what came over the others. A subflow is given data only if a piece given now
//!
//! - would be acknowledged before the others, without it, would be done with everything that is left (as the schedulers
//!   ECF, Lim et al., CoNEXT 2017, and BLEST, Ferlin et al., IFIP Networking 2016, decide of a packet), and
//! - can wait there while the others send on, in buffers of `room` bytes.
//!
//! What is doubtful is taken so that it speaks against the subflow: of it the rate that it has delivered, of the others what
//! their windows let go, doubling each round trip as long as they grow. One that holds what the others could have sent again
//! and be done while they stand idle is to be closed, at the end and where what it holds has filled the buffers, unless it
//! would be missed for longer in what is left. A line that is known to be much slower than the others can bring little and
//! hold up much: wider margins are asked of it. Under a coupled controller one is closed also where it costs the best one more
//! than it brings. Numbers are those of struct tcp_info; nothing is known of the lines but
//! these, and that the first subflow goes over the best path.

use pathcast_base::Nanos;

use line::{Line, bytes, done, per_second, rate, time};

mod line;

/// Least that the kernel gives at once [byte].
const PIECE: u64 = 65_428;
/// A rate that grows by less than a quarter in three round trips has come to its end (the rule of BBR's start).
const ROUNDS: u64 = 3;
/// What waits beyond a round trip, so that none runs dry between two looks [ns].
const AHEAD: u64 = 20_000_000;
/// A window that queues are the end of meets one every so many round trips.
const SAWTOOTH: u64 = 30;
/// One whose pace promises so many times what it delivers gets a piece at a time: the kernel would give it as much more than the others.
const HASTY: u64 = 8;
/// One that delivers so many times less than the others brings little: its margins are wider.
const FAR: u64 = 8;
/// Of a rise in what a line delivers that has lost packets a part is believed: a hole that is filled is acknowledged at once.
const BELIEVED: u64 = 4;
/// What is written and not taken by a subflow, at most (TCP_NOTSENT_LOWAT) [byte].
pub const UNSENT: u32 = 64 << 10;
/// Least that may wait [byte].
const LEAST: u64 = 4 * PIECE;
/// Deliveries are measured over a round trip, and so long at least [ns].
const LOOK: u64 = 20_000_000;

/// One subflow, as struct tcp_info has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubflowSeen {
    /// Its number in the connection.
    pub id: u32,
    /// Smoothed round trip; 0 while there is none.
    pub srtt: Nanos,
    /// Congestion window [byte].
    pub window: u64,
    /// Smallest round trip; 0 while there is none.
    pub min_rtt: Nanos,
    /// Pacing rate [byte/s]; 0: none.
    pub pace: u64,
    /// Given to it and not sent yet [byte].
    pub unsent: u64,
    /// Sent and not acknowledged [byte].
    pub out: u64,
    /// Acknowledged so far [byte].
    pub acked: u64,
    /// Sent again so far [packet].
    pub again: u64,
    /// Timeouts in a row.
    pub timeouts: u32,
}

/// What a connection has yet to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Given to no subflow yet [byte].
    pub left: u64,
    /// Of these, what the program has written already: the next subflow with room takes it [byte].
    pub waits: u64,
    /// Given to them and not acknowledged at the level of the connection [byte].
    pub open: u64,
    /// What both ends' buffers hold [byte].
    pub room: u64,
    /// The controller shares one increase among the subflows, as LIA does.
    pub coupled: bool,
}

/// What is to be done with a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be given data.
    Free,
    /// It is given none while another may be.
    Hold(Held),
    /// It is to be closed. `Late`: the others stand idle, and would have sent again what it holds before it delivers it. `Silent`:
    /// so too, but it would be missed; it is to be tried again later.
    Close(Held),
}

/// Why a subflow is given nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// What it was given now would arrive after the others were done.
    Late,
    /// It waits for its next piece: its pace is far above what it delivers.
    Piece,
    /// What waits for it would fill the buffers.
    Room,
    /// Its timeouts follow one another.
    Silent,
    /// The best path's window is that of random losses, or is still to grow, and a coupled controller takes of it what it gives any
    /// other, idle or not.
    Coupled,
}

#[derive(Clone, Copy, Debug)]
struct Track {
    id: u32,
    /// The largest rate of its windows so far, and when that had grown by a quarter last.
    rate: u64,
    grown: Nanos,
    /// That rate has come to its end, or packets were lost.
    full: bool,
    /// What it delivers [byte/s]; what it had delivered at the time since when that is measured.
    delivers: u64,
    acked: u64,
    since: Nanos,
    /// When packets last waited for it in a queue.
    queued: Nanos,
    /// What it had sent again at the last look [packet].
    again: u64,
    /// Losses long after the last queue, since that one, and when the last of them was.
    apart: u32,
    lost: Nanos,
    /// The most that it delivered while packets waited [byte/s].
    top: u64,
    /// Its queue has grown, or packets were lost: what it delivers is what its line carries.
    met: bool,
    /// What it had acknowledged at the last look, and since when it is no more while something is out.
    heard: u64,
    quiet: Nanos,
    held: bool,
    /// When it was seen first, and what it had acknowledged then.
    born: Nanos,
    before: u64,
}

/// The rule, and what it remembers of the subflows.
#[derive(Clone, Debug, Default)]
pub struct Steer {
    tracks: Vec<Track>,
    /// The subflow that the others are measured by.
    best: u32,
    /// [`Steer::ahead`].
    ahead: u64,
    /// [`Steer::trial`].
    trial: Option<u64>,
}

impl Steer {
    /// A connection's subflows as they stand at `now`, the first one first: what is to be done with each, in their order. One
    /// at least is free.
    pub fn look(&mut self, now: Nanos, task: Task, seen: &[SubflowSeen]) -> Vec<Verdict> {
        self.tracks.retain(|track| seen.iter().any(|one| one.id == track.id));
        let lines: Vec<Line> = seen.iter().map(|one| self.follow(now, one)).collect();
        let mut verdicts = vec![Verdict::Free; seen.len()];
        let Some(best) = self.best(&lines, task.left) else { return verdicts };
        let mut free = vec![lines[best]];
        let mut hasty = vec![false; seen.len()];
        let mut order: Vec<usize> = (0..lines.len()).filter(|&i| i != best).collect();
        order.sort_by_key(|&i| (lines[i].delay(PIECE, &free), i));
        for &i in &order {
            if task.coupled && best == 0 && lines[best].is_slowed(&lines[i], task.left) {
                verdicts[i] = Verdict::Close(Held::Coupled);
                continue;
            }
            verdicts[i] = judge(&lines[i], &free, task).map_or(Verdict::Free, Verdict::Hold);
            let times = if is_risky(&lines[i], &free, task) { HASTY / 2 } else { HASTY };
            let promises = lines[i].seen.pace / times > lines[i].least;
            // an ACK may make its window and its pace many times what they are, long before the next look
            let far = lines[i].least.saturating_mul(FAR) < free.iter().map(|line| line.rate).sum();
            hasty[i] = verdicts[i] == Verdict::Free && (promises || far);
            if hasty[i] {
                verdicts[i] = Verdict::Hold(Held::Piece);
            } else if verdicts[i] == Verdict::Free {
                free.push(lines[i]);
            }
        }
        for track in &mut self.tracks {
            let at = seen.iter().position(|one| one.id == track.id).expect("the others are gone");
            track.held = verdicts[at] != Verdict::Free;
        }
        let rate: u64 = free.iter().map(|line| line.rate).sum();
        let longest = free.iter().map(|line| line.seen.srtt.0).max().unwrap_or(0);
        self.ahead = LEAST + bytes(rate, longest + AHEAD);
        self.trial = None;
        // those that are free must not run dry meanwhile
        let unsent: u64 = free.iter().map(|line| line.seen.unsent).sum();
        if task.left > 0 && unsent >= bytes(rate, AHEAD) {
            // one that is unknown is tried once
            let unknown = order.iter().filter(|&&i| !lines[i].proven);
            let of = unknown.chain(order.iter().filter(|&&i| lines[i].proven)).find_map(|&i| {
                let (line, most) = (&lines[i], PIECE.max(task.waits));
                match hasty[i] {
                    true if line.proven => (line.seen.unsent < PIECE).then_some((i, line.piece(), true)),
                    true if line.is_bearable(most, &free, task) => {
                        (line.seen.unsent < PIECE).then_some((i, PIECE, true))
                    }
                    true => line.trial().map(|bytes| (i, bytes, task.waits <= bytes)),
                    false => trial(line, verdicts[i], &free, task).map(|bytes| {
                        let bears = line.is_bearable(task.waits, &free, task);
                        let early = line.tried(task.waits, &free) <= done(&free, task.left);
                        (i, bytes, task.waits <= bytes || (bears && early))
                    }),
                }
            });
            if let Some((i, bytes, now)) = of {
                // it would take all that waits: first the others do
                let bytes = bytes * u64::from(now);
                if now {
                    verdicts[i] = Verdict::Free;
                }
                (self.trial, self.ahead) = (Some(bytes), unsent + bytes);
            }
        }
        let blocked = task.left > 0 && task.open >= task.room / 5 * 4;
        for i in 0..lines.len() {
            let why = match task.left {
                _ if i == best && !(lines[i].quiet && lines[i].holds() <= PIECE) => continue,
                0 if i == best || verdicts[i] != Verdict::Free => Held::Late,
                _ if blocked && lines[i].may_be_dead() => Held::Silent,
                _ if blocked => Held::Room,
                _ => continue,
            };
            let others = if i == best { &lines } else { &free };
            let others = others.iter().filter(|one| one.seen.id != seen[i].id);
            // the best is measured by all that answer, and by those that a window would be enough of
            let mut others: Vec<Line> = others.copied().collect();
            if i == best {
                others.retain(|one| one.answers() || (!one.is_silent() && one.trial() >= Some(lines[i].holds())));
                others.iter_mut().filter(|one| !one.proven).for_each(|one| one.least = one.rate);
            }
            if hopeless(&lines[i], &others, task) {
                verdicts[i] = Verdict::Close(why);
            }
        }
        verdicts
    }

    /// What may wait in the subflows that are free, together [byte]: more gives a slow one its share, and would stand if one collapses.
    pub fn ahead(&self) -> u64 {
        if self.trial.is_some() { self.ahead } else { self.ahead.max(LEAST) }
    }

    /// No more than this [byte] is to be given until the next look: one of those that are free is tried with it.
    pub fn trial(&self) -> Option<u64> {
        self.trial
    }

    /// The one that would be done first by itself; another than before only where that is certain.
    fn best(&mut self, lines: &[Line], left: u64) -> Option<usize> {
        let was = lines.iter().position(|line| line.seen.id == self.best).unwrap_or(0);
        let incumbent = lines.get(was)?;
        // what is out counts: at the end the shortest line would else be the best, whatever its rate
        let held: u64 = lines.iter().map(|line| line.seen.unsent + line.seen.out).sum();
        let all = left.saturating_add(held);
        let now = time(all, incumbent.rate) + incumbent.seen.srtt.0;
        let (mut best, mut least) = (was, if incumbent.is_silent() { u64::MAX } else { now - now / 4 });
        let lost = incumbent.is_silent();
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_silent() && (line.proven || lost)) {
            let alone = time(all, line.least) + line.seen.srtt.0;
            if i != was && alone < least {
                (best, least) = (i, alone);
            }
        }
        self.best = lines[best].seen.id;
        Some(best)
    }

    /// What a subflow's numbers say, with those before.
    fn follow(&mut self, now: Nanos, seen: &SubflowSeen) -> Line {
        let rate = rate(seen);
        let at = self.tracks.iter().position(|track| track.id == seen.id).unwrap_or_else(|| {
            // nothing is known of it: a window may be far more than its line carries in a round trip
            self.tracks.push(Track {
                id: seen.id,
                rate,
                grown: now,
                full: false,
                delivers: 0,
                acked: seen.acked,
                since: now,
                queued: now,
                again: seen.again,
                apart: 0,
                lost: now,
                top: 0,
                met: false,
                heard: seen.acked,
                quiet: now,
                held: true,
                born: now,
                before: seen.acked,
            });
            self.tracks.len() - 1
        });
        let track = &mut self.tracks[at];
        if rate > track.rate + track.rate / 4 {
            (track.rate, track.grown) = (rate, now);
        }
        track.full |= seen.again > 0 || now.0 >= track.grown.0 + ROUNDS * seen.srtt.0;
        let (took, came) = (now.saturating_sub(track.since).0, seen.acked.saturating_sub(track.acked));
        if seen.out == 0 {
            // all that it had came back meanwhile: it delivers as much at least
            let delivers = per_second(came, Nanos(took));
            if seen.again == 0 || track.delivers == 0 {
                track.delivers = track.delivers.max(delivers);
            }
            (track.acked, track.since) = (seen.acked, now);
        } else if took >= seen.srtt.0.max(LOOK) {
            let delivers = per_second(came, Nanos(took));
            // one that had less to send than it could does not show what it can
            let limited = seen.unsent == 0 && delivers < track.delivers;
            if came > 0 && !limited {
                let rise = delivers.saturating_sub(track.delivers);
                let doubtful = seen.again > 0 && track.delivers > 0 && rise > 0;
                track.delivers = if doubtful { track.delivers + rise / BELIEVED } else { delivers };
            }
            (track.acked, track.since) = (seen.acked, now);
        }
        if seen.srtt.0 > seen.min_rtt.0 + seen.min_rtt.0 / 4 {
            track.queued = now;
            track.apart = 0;
            track.top = track.top.max(track.delivers);
            track.met = true;
        }
        track.met |= seen.again > 0;
        if seen.acked != track.heard || seen.out == 0 {
            (track.heard, track.quiet) = (seen.acked, now);
        }
        let waits = seen.srtt.0 + AHEAD;
        let quiet = now.saturating_sub(track.quiet).0 > waits + waits / 2;
        let clear = now.0 > track.queued.0 + SAWTOOTH * seen.srtt.0;
        if seen.again > track.again && clear && (track.apart == 0 || now.0 > track.lost.0 + 4 * seen.srtt.0) {
            (track.apart, track.lost) = (track.apart + 1, now);
        }
        track.again = seen.again;
        // one that is silent promises nothing
        let least = if seen.timeouts > 0 { 1 } else { track.delivers.min(rate).max(1) };
        Line {
            seen: *seen,
            rate,
            least,
            proven: track.delivers > 0,
            full: track.full,
            random: track.apart > 1,
            grows: seen.again > 0 && clear,
            top: track.top,
            delivers: track.delivers,
            mean: per_second(seen.acked.saturating_sub(track.before), now.saturating_sub(track.born)),
            met: track.met,
            quiet,
            held: track.held,
        }
    }
}

/// Why `line` is to be given nothing beside those that are `free`. One that was held is let go a quarter later than it is held.
fn judge(line: &Line, free: &[Line], task: Task) -> Option<Held> {
    if line.is_silent() {
        return Some(Held::Silent);
    }
    let delay = line.delay(PIECE, free);
    let delay = match (line.is_far(free), line.held) {
        (true, true) => 2 * delay,
        (true, false) => delay + delay / 2,
        (false, true) => delay + delay / 4,
        (false, false) => delay,
    };
    if delay > done(free, task.left) {
        return Some(Held::Late);
    }
    let rate: u64 = free.iter().map(|line| line.rate).sum();
    (bytes(rate, line.wait()) > room(line, free, task)).then_some(Held::Room)
}

/// What may wait in the buffers for what `line` is given [byte].
fn room(line: &Line, free: &[Line], task: Task) -> u64 {
    if is_risky(line, free, task) { task.room / 2 } else { task.room }
}

/// Whether what `line` is given may come to stand there: it is much slower, or stays small for long once it has lost a packet.
fn is_risky(line: &Line, free: &[Line], task: Task) -> bool {
    task.coupled || line.is_far(free)
}

/// What a line that is held for being late, or unknown, is tried with [byte].
fn trial(line: &Line, verdict: Verdict, free: &[Line], task: Task) -> Option<u64> {
    let bytes = line.trial().filter(|_| verdict == Verdict::Hold(Held::Late))?;
    (line.tried(bytes, free) <= done(free, task.left)).then_some(bytes)
}

/// Whether the others, which have nothing to send, would be done with all that is open before it has delivered what it holds.
fn hopeless(line: &Line, free: &[Line], task: Task) -> bool {
    let holds = line.holds();
    let idle = free.iter().all(|line| line.seen.unsent == 0 && line.seen.out < line.seen.window / 2);
    let rate: u64 = free.iter().map(|line| line.least).sum();
    let srtt = free.iter().map(|line| line.seen.srtt.0).max().unwrap_or(0);
    // all that is open is sent again, from its first byte on: one piece is there, since the others are done with theirs
    let out: u64 = free.iter().map(|line| line.seen.out).sum();
    let first = if holds <= PIECE && task.left == 0 { holds } else { task.open };
    let again = time(out + first, rate) + 2 * srtt;
    holds > 0 && idle && line.rest() > again + again / 2 + line.worth(task.left, rate)
}

/// Whether a controller of this name, here or in the kernel, shares one increase among subflows, or LIA's does for it.
pub fn is_coupled(control: &str) -> bool {
    const NAMES: [&str; 12] = [
        "lia",
        "olia",
        "balia",
        "gsam",
        "subflow_switch",
        "switch",
        "lisa",
        "css",
        "hystartpp",
        "hystart",
        "adaptive_start",
        "adaptive",
    ];
    let name = control.strip_prefix("pc_").unwrap_or(control);
    // the kernel has further copies under `_2`, `_3`, ...
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    NAMES.contains(&name.rsplit_once('_').filter(|(_, copy)| number(copy)).map_or(name, |(first, _)| first))
}

#[cfg(test)]
mod tests;
