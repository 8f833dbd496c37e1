//! Which of a schedule's instants get a run now.

use chrono::TimeDelta;
use model::{Catchup, Instant, Schedule};

use crate::Calendar;

/// An instant counts as missed after this time: the sweep runs every minute.
pub const GRACE: TimeDelta = TimeDelta::minutes(2);

/// The number of runs created at once unless the schedule sets another.
const CAP: u32 = 100;

/// Where more are due than are created at once, the others follow after this time.
const NEXT_BATCH_AFTER: TimeDelta = TimeDelta::minutes(1);

/// How far a schedule has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Every instant up to here has been decided about.
    pub decided_until: Instant,
    /// What a person decided about those that were missed.
    pub owed: Option<CatchupRequest>,
}

/// What a person decided about missed instants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatchupRequest {
    /// Which of them get their runs.
    pub which: Catchup,
    /// Of those up to here.
    pub until: Instant,
}

/// What is to be done about a schedule now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// The logical dates that get their runs, oldest first.
    pub make: Vec<Instant>,
    /// How far the schedule has come then.
    pub then: Progress,
    /// When to evaluate the schedule next; none if nothing is to come.
    pub due_at: Option<Instant>,
}

/// Decides which instants get a run. Those that are on time always do; which of the missed ones do is the schedule's
/// choice, or a person's.
pub fn due(calendar: &Calendar, schedule: &Schedule, progress: Progress, now: Instant) -> Due {
    let cap = schedule.cap.unwrap_or(CAP) as usize;
    let Progress { decided_until: from, owed } = progress;
    let owed_until = owed.map_or(from, |owed| owed.until.clamp(from, now.max(from)));
    let mut make = Vec::new();
    if let Some(owed) = owed {
        make.extend(chosen(calendar, owed.which, from, owed_until, owed_until).take(cap + 1));
    }
    let fresh = (now - GRACE).max(owed_until);
    make.extend(
        chosen(calendar, schedule.catchup, owed_until, now, fresh).take((cap + 1).saturating_sub(make.len())),
    );
    if make.len() > cap {
        make.truncate(cap);
        let until = make.last().copied().unwrap_or(from);
        let owed = owed.filter(|owed| owed.until > until);
        return Due {
            make,
            then: Progress { decided_until: until, owed },
            due_at: Some(now + NEXT_BATCH_AFTER),
        };
    }
    let then = Progress { decided_until: now.max(from), owed: None };
    Due { make, then, due_at: calendar.after(then.decided_until) }
}

/// The instants after `from` up to `to` that get their runs; those after `fresh` are not missed.
fn chosen(
    calendar: &Calendar,
    which: Catchup,
    from: Instant,
    to: Instant,
    fresh: Instant,
) -> impl Iterator<Item = Instant> {
    let start = match which {
        Catchup::All => from,
        Catchup::None => fresh,
        // The latest one, and with it whatever is not missed.
        Catchup::Latest => {
            let latest = calendar.before(to + TimeDelta::microseconds(1));
            latest.map_or(fresh, |latest| fresh.min(latest - TimeDelta::microseconds(1))).max(from)
        }
    };
    calendar.following(start).take_while(move |instant| *instant <= to)
}
