//! The columns of schedules, backfills and wait queues.

use model::wait_queue::Waiter;

use super::super::rows::{backfill_or_nil, int, json};
use super::{Column, Update, array, column};
use crate::{BackfillRecord, ScheduleRecord, normal};

pub(in crate::postgres) const SCHEDULES: &[Column<ScheduleRecord>] = columns! {
    Given "tenant" "int" = |row| row.tenant.0;
    Given "workflow" "text" = |row| text(&row.workflow);
    Given "name" "text" = |row| text(&row.schedule.name);
    Set "definition" "text" "::json" = |row| json(&row.schedule);
    Set "decided_until" "timestamptz" = |row| row.decided_until;
    Set "owed" "text" = |row| row.owed.map(|(which, _)| which.name());
    Set "owed_until" "timestamptz" = |row| row.owed.map(|(_, until)| until);
    Set "due_at" "timestamptz" = |row| row.due_at;
    Set "paused_at" "timestamptz" = |row| row.pause.as_ref().map(|pause| pause.at);
    Set "paused_by" "text" = |row| row.pause.as_ref().map(|pause| text(&pause.by));
    Set "pause_reason" "text" = |row| row.pause.as_ref().and_then(|pause| pause.reason.as_deref()).map(text);
    Set "problem" "text" = |row| row.problem.as_deref().map(text);
    Set "last_date" "timestamptz" = |row| row.last_date;
    Set "drift" "text" "::bigint[]" = |row| array(&row.drift);
    Given "revision" "int" = |row| row.revision;
};

pub(in crate::postgres) const BACKFILLS: &[Column<BackfillRecord>] = columns! {
    Given "id" "uuid" = |row| row.id.0;
    Never "tenant" "int" = |row| row.tenant.0;
    Never "workflow" "text" = |row| text(&row.workflow);
    Never "schedule" "text" = |row| text(&row.schedule);
    Never "version" "int" = |row| row.version;
    Never "from_at" "timestamptz" = |row| row.from;
    Never "to_at" "timestamptz" = |row| row.to;
    Never "max_parallel" "int" = |row| int(row.max_parallel);
    Never "weight" "int" = |row| int(row.weight);
    Never "rerun" "text" = |row| row.rerun.name();
    Set "state" "text" = |row| row.state.name();
    Never "created_at" "timestamptz" = |row| row.created_at;
    Never "created_by" "text" = |row| text(&row.created_by);
    Set "finished_at" "timestamptz" = |row| row.finished_at;
    Set "due_at" "timestamptz" = |row| row.due_at;
    Set "problem" "text" = |row| row.problem.as_deref().map(text);
    Set "cancelled_by" "text" = |row| row.cancelled_by.as_deref().map(text);
    Given "revision" "int" = |row| row.revision;
};

pub(in crate::postgres) const SLOT_WAITERS: &[Column<Waiter>] = columns! {
    Given "run" "uuid" = |row| row.key.run.0;
    Given "idx" "int" = |row| int(row.key.task.0);
    Set "attempt" "int" = |row| int(row.attempt);
    Never "tenant" "int" = |row| row.group.tenant.0;
    Never "backfill" "uuid" = |row| backfill_or_nil(row.group.backfill);
    Set "lim" "int" = |row| row.limit();
    Set "step" "int" = |row| int(row.step as u32);
    Set "needs" "text" "::int[]" = |row| array(&row.needs);
    Set "id" "bigint" = |row| row.id;
    Set "rank" "bigint" = |row| row.rank;
    Set "since" "timestamptz" = |row| row.since;
    Set "granted_at" "timestamptz" = |row| row.granted_at;
};

fn text(text: &str) -> String {
    normal::text(text).into_owned()
}
