-- Schedules, backfills and triggers, which start runs.

-- A schedule of a workflow's active version, and its progress: every instant up to `decided_until` has a run, or was decided
-- to have none.
create table schedules (
    tenant        integer          not null,
    workflow      text collate "C" not null,
    name          text collate "C" not null,
    definition    json             not null,
    decided_until timestamptz      not null,
    -- What a person decided about the instants missed until then.
    owed          text,
    owed_until    timestamptz,
    -- When the sweep should handle it; null while it is paused, and after its last instant.
    due_at        timestamptz,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    -- Why its last instant has no run although it should.
    problem       text,
    last_date     timestamptz,
    -- A histogram of how late runs started.
    drift         bigint[]         not null,
    revision      integer          not null,
    primary key (tenant, workflow, name),
    constraint a_schedule_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint a_schedule_has_a_name check (name <> ''),
    constraint what_is_owed_is_known check (owed in ('all', 'latest', 'none')),
    constraint what_is_owed_has_an_end check ((owed is null) = (owed_until is null)),
    constraint a_paused_schedule_has_an_actor check ((paused_at is null) = (paused_by is null)),
    constraint a_paused_schedule_is_not_due check (paused_at is null or due_at is null),
    constraint a_schedule_counts_from_zero check (revision >= 0 and 0 <= all (drift))
) with (fillfactor = 70);

create index schedules_by_time on schedules (due_at) where due_at is not null;

-- Runs of past dates, requested by people.
create table backfills (
    id           uuid             not null primary key,
    tenant       integer          not null references tenants,
    workflow     text collate "C" not null,
    -- The schedule that the dates belong to.
    schedule     text collate "C" not null,
    -- The version of its runs; null for the active one.
    version      integer,
    from_at      timestamptz      not null,
    to_at        timestamptz      not null,
    max_parallel integer          not null,
    rerun        text             not null,
    state        text             not null,
    created_at   timestamptz      not null,
    created_by   text             not null,
    finished_at  timestamptz,
    -- When the sweep should handle it; null unless it is running, or was cancelled and some of its runs are still active.
    due_at       timestamptz,
    -- Why it does not continue although it should.
    problem      text,
    revision     integer          not null,
    -- The turns of the backfill's tasks for each ten turns of its tenant's live tasks.
    weight       integer          not null default 1,
    cancelled_by text,
    constraint a_backfill_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint a_backfill_goes_forward check (from_at <= to_at),
    constraint a_backfill_has_a_known_state check (state in ('running', 'paused', 'cancelled', 'finished')),
    constraint a_backfill_does_something_known check (rerun in ('missing', 'failed', 'all')),
    constraint a_resting_backfill_is_not_due check (due_at is null or state in ('running', 'cancelled')),
    constraint an_ended_backfill_has_a_time check ((state in ('cancelled', 'finished')) = (finished_at is not null)),
    constraint a_backfill_counts_from_zero check (max_parallel >= 1 and revision >= 0),
    constraint a_backfill_weighs_less_than_what_is_live check (weight between 1 and 9)
);

create index backfills_by_time on backfills (due_at) where due_at is not null;
create index backfills_by_age on backfills (tenant, created_at desc, id desc);
create index backfills_by_end on backfills (finished_at) where finished_at is not null;

-- The dates of a backfill, each with its run. A date is claimed before its run is created, so that one process creates
-- it; it is begun once the run exists.
create table backfill_dates (
    backfill       uuid        not null references backfills,
    date           timestamptz not null,
    interval_start timestamptz not null,
    state          text        not null,
    run            uuid,
    -- Whether the run existed before.
    redo           boolean     not null,
    primary key (backfill, date),
    constraint a_date_has_a_known_state check (state in ('waiting', 'claimed', 'begun')),
    constraint a_date_that_is_begun_has_a_run check (state = 'waiting' or run is not null)
) with (fillfactor = 70);

-- One row per trigger of a workflow's active version. It is found by its keys (types of events, names of workflows),
-- so that an event costs one index lookup however many workflows there are.
create table triggers (
    tenant        integer          not null,
    workflow      text collate "C" not null,
    name          text collate "C" not null,
    kind          text             not null,
    keys          text[]           not null,
    definition    json             not null,
    -- When a sensor polls again, or when the event that is held back starts a run.
    due_at        timestamptz,
    held          json,
    -- The watermark of a sensor.
    watermark     json,
    failures      integer          not null default 0,
    -- The revision of the watermark; a write over another revision is rejected.
    revision      bigint           not null default 0,
    paused_at     timestamptz,
    paused_reason text,
    primary key (tenant, workflow, name),
    constraint a_trigger_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint a_trigger_is_of_a_known_kind check (kind in ('event', 'webhook', 'workflow', 'sensor')),
    constraint a_paused_trigger_says_why check ((paused_at is null) = (paused_reason is null)),
    constraint what_is_held_back_is_due check (held is null or due_at is not null),
    constraint a_trigger_counts_from_zero check (failures >= 0 and revision >= 0)
);

create index triggers_by_key on triggers using gin (keys);
create index triggers_by_time on triggers (due_at) where due_at is not null and paused_at is null;

-- The events that a trigger has received: a duplicate starts no run. A row outlives the trigger.
create table trigger_events (
    tenant   integer          not null,
    workflow text collate "C" not null,
    name     text collate "C" not null,
    id       uuid             not null,
    at       timestamptz      not null,
    what     text             not null,
    run      uuid,
    primary key (tenant, workflow, name, id)
);

create index trigger_events_by_time on trigger_events (tenant, workflow, name, at desc, id);
-- The oldest first, also of triggers that no longer exist: retention deletes them.
create index trigger_events_by_age on trigger_events (at);
