-- A backfill takes turns of its own in every line, beside the live tasks of its tenant, and ends durably.

alter table backfills
    -- For ten turns of its tenant's live tasks, so many of the backfill's.
    add column weight       integer not null default 1,
    add column cancelled_by text,
    add constraint a_backfill_weighs_less_than_what_is_live check (weight between 1 and 9),
    -- One that was cancelled is looked at until its runs were, too.
    drop constraint only_a_running_backfill_is_looked_at,
    add constraint a_backfill_that_rests_is_not_looked_at
        check (look_at is null or state in ('running', 'cancelled'));

create index backfills_by_end on backfills (finished_at) where finished_at is not null;

-- The backfill whose turn it takes; nil for a live task.
alter table line add column backfill uuid not null default '00000000-0000-0000-0000-000000000000';

drop index line_by_tenant;
create index line_by_party on line (lim, tenant, backfill, rank, id, run, idx) where granted_at is null;

-- Where a backfill's next task goes in a line, and how many were given a place from it.
create table backfill_standings (
    lim      integer not null references limits,
    backfill uuid    not null references backfills on delete cascade,
    position bigint  not null,
    received bigint  not null,
    primary key (lim, backfill),
    constraint standings_of_backfills_count_from_zero check (position >= 0 and received >= 0)
) with (fillfactor = 50);
