-- Runs of dates that are past, asked for by people.

create table backfills (
    id           uuid             not null primary key,
    tenant       integer          not null references tenants,
    workflow     text collate "C" not null,
    -- Whose dates they are.
    schedule     text collate "C" not null,
    -- The number of the version that its runs take; null for the active one.
    version      integer,
    from_at      timestamptz      not null,
    to_at        timestamptz      not null,
    max_parallel integer          not null,
    rerun        text             not null,
    state        text             not null,
    created_at   timestamptz      not null,
    created_by   text             not null,
    finished_at  timestamptz,
    -- When the sweep should look; null unless it is running.
    look_at      timestamptz,
    -- Why it does not go on, where it should.
    problem      text,
    revision     integer          not null,
    constraint a_backfill_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint a_backfill_goes_forward check (from_at <= to_at),
    constraint a_backfill_has_a_known_state check (state in ('running', 'paused', 'cancelled', 'finished')),
    constraint a_backfill_does_something_known check (rerun in ('missing', 'failed', 'all')),
    constraint only_a_running_backfill_is_looked_at check (look_at is null or state = 'running'),
    constraint an_ended_backfill_has_a_time check ((state in ('cancelled', 'finished')) = (finished_at is not null)),
    constraint a_backfill_counts_from_zero check (max_parallel >= 1 and revision >= 0)
);

create index backfills_by_time on backfills (look_at) where look_at is not null;
create index backfills_by_age on backfills (tenant, created_at desc, id desc);

-- The dates of a backfill, each with its run. A date is claimed before its run is made, so that one process makes it;
-- it is begun once the run is there.
create table backfill_dates (
    backfill       uuid        not null references backfills,
    date           timestamptz not null,
    interval_start timestamptz not null,
    state          text        not null,
    run            uuid,
    -- Whether the run was there before.
    redo           boolean     not null,
    primary key (backfill, date),
    constraint a_date_has_a_known_state check (state in ('waiting', 'claimed', 'begun')),
    constraint a_date_that_is_begun_has_a_run check (state = 'waiting' or run is not null)
) with (fillfactor = 70);
