//! What is due, and what could not be taken in.

use std::cmp::Reverse;

use model::{Instant, Message, Run, RunId, TaskKey, TenantId, Timer};

use super::tables::{Tables, TimerKey};
use crate::{Agenda, DeadLetter, DueTimer, LetterFilter, TimerFilter, TimerRecord, Unsent, normal};

/// Whether somebody should look at a run: it has not ended, and does not only wait.
fn is_lost(run: &Run) -> bool {
    run.finished_at.is_none() && !run.counts.is_asleep()
}

impl Tables {
    pub(super) fn agenda(&self, now: Instant) -> Agenda {
        let timers = || self.timers.values().map(|timer| timer.wake_at);
        Agenda {
            timer: timers().min(),
            next_timer: timers()
                .filter(|at| *at > now)
                .chain(self.first_schedule(|at| at > now))
                .chain(self.first_backfill(|at| at > now))
                .min(),
            schedule: self.first_schedule(|_| true),
            backfill: self.first_backfill(|_| true),
            checkup: self.runs.values().filter_map(|row| row.checkup_at).min(),
            unsent: self.outbox.values().next().map(|(at, _)| *at),
            granted: self.places.first_granted(),
            room: self.places.has_room(),
            worker: self.most_silent(),
            retention: Some(self.retention_at.unwrap_or(Instant::UNIX_EPOCH)),
            trigger: self.first_trigger(),
            neglected: self.runs.values().any(|row| row.checkup_at.is_none() && is_lost(&row.run)),
        }
    }

    pub(super) fn due_timers(&self, now: Instant, limit: u32) -> Vec<DueTimer> {
        let mut due: Vec<_> = self.timers.iter().filter(|(_, timer)| timer.wake_at <= now).collect();
        due.sort_by_key(|((run, task, kind), timer)| (timer.wake_at, *run, *task, kind.name()));
        due.truncate(limit as usize);
        due.into_iter().map(|((run, ..), timer)| DueTimer { run: *run, timer: timer.clone() }).collect()
    }

    pub(super) fn timers(&self, tenant: TenantId, filter: &TimerFilter) -> Vec<TimerRecord> {
        let record = |((run, task, _), timer): (&TimerKey, &Timer)| {
            let of = &self.runs.get(run)?.run;
            let child = task.and_then(|task| self.tasks.get(&TaskKey { run: *run, task })?.child);
            let (workflow, version, timer) = (of.workflow.clone(), of.version, timer.clone());
            (of.tenant == tenant).then_some(TimerRecord { run: *run, workflow, version, child, timer })
        };
        let timers = self.timers.iter().filter_map(record);
        let timers = timers.filter(|found| filter.run.is_none_or(|run| found.run == run));
        let timers =
            timers.filter(|found| filter.workflow.as_ref().is_none_or(|name| found.workflow == *name));
        let timers = timers.filter(|found| filter.after.as_ref().is_none_or(|place| found.place() > *place));
        let mut timers: Vec<TimerRecord> = timers.collect();
        timers.sort_by_key(TimerRecord::place);
        timers.truncate(filter.limit as usize);
        timers
    }

    pub(super) fn due_checkups(&self, now: Instant, limit: u32) -> Vec<RunId> {
        let at = self.runs.iter().filter_map(|(id, row)| row.checkup_at.map(|at| (at, *id)));
        let mut due: Vec<_> = at.filter(|(at, _)| *at <= now).collect();
        due.sort_unstable();
        due.into_iter().take(limit as usize).map(|(_, id)| id).collect()
    }

    pub(super) fn postpone(&mut self, run: RunId, now: Instant, until: Instant) {
        let checkup = self.runs.get_mut(&run).and_then(|row| row.checkup_at.as_mut());
        let timers = self.timers.iter_mut().filter(|((of, ..), _)| *of == run);
        let timers = timers.map(|(_, timer)| &mut timer.wake_at);
        timers.chain(checkup).filter(|at| **at <= now).for_each(|at| *at = until);
    }

    pub(super) fn check_all(&mut self, now: Instant) -> u64 {
        let open = self.runs.values_mut().filter(|row| row.run.finished_at.is_none());
        open.map(|row| row.checkup_at = Some(row.checkup_at.map_or(now, |at| at.min(now)))).count() as u64
    }

    /// Writes what a unit has to say into the outbox.
    pub(super) fn post(&mut self, said: Vec<(Instant, Message)>) -> Option<Unsent> {
        let at = said.iter().map(|(at, _)| *at).min()?;
        let messages: Vec<Message> = said.into_iter().map(|(_, message)| message).collect();
        self.last_post += 1;
        self.outbox.insert(self.last_post, (at, messages.clone()));
        Some(Unsent { id: self.last_post, messages })
    }

    pub(super) fn unsent(&self, before: Instant, limit: u32) -> Vec<Unsent> {
        let old = self.outbox.iter().filter(|(_, (at, _))| *at <= before);
        old.map(|(id, (_, messages))| Unsent { id: *id, messages: messages.clone() })
            .take(limit as usize)
            .collect()
    }

    pub(super) fn sent(&mut self, ids: &[i64]) {
        for id in ids {
            self.outbox.remove(id);
        }
    }

    pub(super) fn bury(&mut self, letter: &DeadLetter) {
        let letter = normal::letter(letter);
        self.letters.entry(letter.id.clone()).or_insert(letter);
    }

    pub(super) fn dead_letters(&self, filter: &LetterFilter) -> Vec<DeadLetter> {
        let holds = |letter: &&DeadLetter, text: &String| {
            let text = normal::text(text);
            letter.reason.contains(&*text) || letter.body.contains(&*text)
        };
        let is_after =
            |letter: &&DeadLetter, (at, id): &(Instant, String)| (letter.at, &letter.id) < (*at, id);
        let letters = self.letters.values();
        let letters =
            letters.filter(|letter| filter.source.as_ref().is_none_or(|source| letter.source == *source));
        let letters = letters.filter(|letter| filter.text.as_ref().is_none_or(|text| holds(letter, text)));
        let letters =
            letters.filter(|letter| filter.after.as_ref().is_none_or(|place| is_after(letter, place)));
        let mut letters: Vec<&DeadLetter> = letters.collect();
        letters.sort_by_key(|letter| Reverse((letter.at, &letter.id)));
        letters.into_iter().take(filter.limit as usize).cloned().collect()
    }
}
