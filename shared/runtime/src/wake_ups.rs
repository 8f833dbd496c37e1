//! Requests wake-ups of the sweep where no tick comes every minute.
//!
//! A commit leaves something for the sweep: a recheck within two minutes, timers, messages that may get lost. So after a commit,
//! a wake-up must be on its way that comes in time. Each sweep requests the next one from its agenda, which it reads after that
//! commit; so a process that knows of one need not request another.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use model::message::TimerArmed;
use model::{Instant, Message};

/// Lost messages are noticed after this time.
const RECHECK_WITHIN: TimeDelta = TimeDelta::minutes(2);

/// A wake-up that comes sooner than this may read its agenda before a commit that has just been made.
const MARGIN: TimeDelta = TimeDelta::seconds(5);

/// The next wake-up that this process has requested.
#[derive(Default)]
pub(crate) struct Requested(Mutex<Option<Instant>>);

impl Requested {
    /// Replaces the requests among `messages` by the one that is needed, if any.
    pub(crate) fn reduce(&self, messages: &mut Vec<Message>, now: Instant) {
        if messages.is_empty() {
            return;
        }
        let timer = messages.iter().filter_map(due_at).min();
        messages.retain(|message| due_at(message).is_none());
        let wake_at = timer.into_iter().chain([now + RECHECK_WITHIN]).min().unwrap_or(now);
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_some_and(|next| next > now + MARGIN && next <= wake_at) {
            return;
        }
        *next = Some(wake_at);
        messages.push(Message::TimerArmed(TimerArmed { wake_at }));
    }
}

fn due_at(message: &Message) -> Option<Instant> {
    match message {
        Message::TimerArmed(armed) => Some(armed.wake_at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::RunId;
    use model::message::RunNudged;

    use super::*;

    fn nudged() -> Message {
        Message::RunNudged(RunNudged { run: RunId(uuid::Uuid::nil()) })
    }

    fn armed(wake_at: Instant) -> Message {
        Message::TimerArmed(TimerArmed { wake_at })
    }

    #[test]
    fn a_busy_process_requests_one_wake_up_and_nearer_ones() {
        let (requested, now) = (Requested::default(), Instant::from_timestamp(1_800_000_000, 0).unwrap());
        let after = |seconds| now + TimeDelta::seconds(seconds);
        let reduce = |mut messages: Vec<Message>, now| {
            requested.reduce(&mut messages, now);
            messages
        };
        assert_eq!(reduce(vec![], now), [], "nothing was left to do");
        assert_eq!(reduce(vec![nudged()], now), [nudged(), armed(after(120))]);
        assert_eq!(reduce(vec![nudged()], after(60)), [nudged()], "one is on its way");
        let timers = vec![armed(after(90)), armed(after(80))];
        assert_eq!(reduce(timers, after(60)), [armed(after(80))], "a timer is due before");
        assert_eq!(reduce(vec![nudged()], after(76)), [nudged(), armed(after(196))], "it may come too soon");
    }
}
