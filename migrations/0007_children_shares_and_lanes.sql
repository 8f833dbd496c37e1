-- Runs that grow while they are under way, and what runs have to do with each other.

-- A child of a fan-out knows the fan-out and the place of its item; a fan-out knows how far it has come. Only a
-- fan-out has an array, so the rows of other tasks stay small. A child has no foreign key to its fan-out: ten thousand
-- are born at once, and with no index on it each row that is dropped some day would be looked for in all of the run.
alter table tasks
    add column child_of integer,
    add column item     integer,
    -- The first child, then how many there are, may go on, ended, succeeded, failed and were skipped.
    add column fan      integer[],
    add column begun_at timestamptz,
    add constraint a_child_has_a_fan_out_and_a_place check ((child_of is null) = (item is null)),
    add constraint a_child_comes_after_its_fan_out check (child_of >= 0 and child_of < idx and item >= 0),
    add constraint a_fan_out_counts_its_children check (
        cardinality(fan) = 7 and 0 <= all (fan)
        and fan[3] <= fan[2] and fan[4] <= fan[2] and fan[5] + fan[6] + fan[7] <= fan[4]
    ),
    add constraint children_come_after_their_fan_out check (fan[2] = 0 or fan[1] > idx),
    add constraint only_an_attempt_begins_a_task check (begun_at is null or attempt >= 1),
    add constraint a_task_finishes_after_it_began check (finished_at >= begun_at);

-- What children are about: written once, as large as it may be, and so kept apart. As with outputs, there are no
-- foreign keys.
create table items (
    run  uuid    not null,
    idx  integer not null,
    item json    not null,
    primary key (run, idx),
    constraint an_item_belongs_to_a_task check (idx >= 0)
);

-- A run may have been started by a task of another run, and may share a limit with others of its workflow: its lane.
-- Of these, only `held` changes.
alter table runs
    add column parent_run     uuid,
    add column parent_idx     integer,
    add column parent_attempt integer,
    add column parent_waits   boolean,
    add column depth          integer not null default 0,
    add column lane           text,
    add column held           boolean not null default false,
    add constraint a_parent_is_a_task_at_an_attempt check (
        num_nulls(parent_run, parent_idx, parent_attempt, parent_waits) in (0, 4)
    ),
    add constraint a_parent_counts_from_zero check (parent_idx >= 0 and parent_attempt >= 0),
    add constraint a_run_is_not_its_own_parent check (parent_run <> id),
    add constraint a_run_with_a_parent_is_below_it check (depth >= 0 and (parent_run is null or depth >= 1)),
    add constraint only_a_run_in_a_lane_is_held check (lane is not null or not held);

create index unfinished_runs_of_a_lane on runs (tenant, workflow, lane, created_at, id)
    where finished_at is null and lane is not null;

-- A task may have timers of several kinds, and a run has its own, with an index of -1. That a task's timer belongs to
-- a task is seen by a column which is null for the run's own.
alter table timers
    drop constraint timers_pkey,
    drop constraint a_timer_belongs_to_a_task,
    drop constraint a_timer_is_of_a_known_kind,
    add column task integer generated always as (nullif(idx, -1)) stored;
alter table timers
    add primary key (run, idx, kind),
    add constraint a_timer_belongs_to_a_run foreign key (run) references runs,
    add constraint a_timer_belongs_to_a_task foreign key (run, task) references tasks,
    add constraint a_timer_is_of_a_known_kind check (kind in ('retry', 'sleep', 'timeout', 'deadline')),
    add constraint a_run_has_no_attempts check (idx >= 0 or attempt = 0),
    add constraint a_run_neither_retries_nor_sleeps check (idx >= 0 or kind in ('timeout', 'deadline')),
    add constraint only_a_run_has_a_deadline check (idx = -1 or kind <> 'deadline');

-- A task that several runs share: who carries it out, or did. A row is gone once it was carried out in vain. It may
-- be there before the owner's run is, and after it; so there are no foreign keys to runs.
create table shared_tasks (
    tenant      integer          not null references tenants,
    name        text collate "C" not null,
    key         text collate "C" not null,
    owner_run   uuid             not null,
    owner_idx   integer          not null,
    -- Null while it is under way; then it succeeded.
    finished_at timestamptz,
    primary key (tenant, name, key),
    constraint a_shared_task_has_a_name check (name <> ''),
    constraint an_owner_is_a_task check (owner_idx >= 0)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index shared_tasks_by_owner on shared_tasks (owner_run, owner_idx);

-- Tasks that wait for a shared one which another task carries out. A task waits for one at a time.
create table waiters (
    run       uuid    not null,
    idx       integer not null,
    attempt   integer not null,
    owner_run uuid    not null,
    owner_idx integer not null,
    primary key (run, idx),
    constraint a_waiter_counts_from_zero check (idx >= 0 and attempt >= 0 and owner_idx >= 0),
    constraint nothing_waits_for_itself check ((run, idx) <> (owner_run, owner_idx))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index waiters_by_owner on waiters (owner_run, owner_idx, run, idx);
