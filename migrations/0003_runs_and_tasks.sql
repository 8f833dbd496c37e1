-- Active runs and tasks: small rows that are updated often, with free space on their pages (fillfactor) for updates that
-- touch no index.

-- One row per run. Locking it locks everything in the run.
create table runs (
    id                uuid             not null primary key,
    tenant            integer          not null references tenants,
    workflow          text collate "C" not null,
    version           bigint           not null references versions,
    state             text             not null,
    revision          integer          not null,
    -- The number of tasks in each state, in the order of the states in the code.
    counts            integer[]        not null,
    failures          integer          not null,
    events            bigint           not null,
    created_at        timestamptz      not null,
    started_at        timestamptz,
    finished_at       timestamptz,
    error             text,
    -- When the sweep should recheck the run. Steps of a run do not change it, so that they touch no index.
    recheck_at        timestamptz,
    logical_date      timestamptz,
    -- A logical date is taken once per workflow by its only schedule and by people, and once by each further schedule:
    -- these have names here.
    schedule          text collate "C" not null default '',
    -- The task of another run that started this one.
    parent_run        uuid,
    parent_idx        integer,
    parent_attempt    integer,
    parent_waits      boolean,
    depth             integer          not null default 0,
    -- Runs of one workflow that share a limit, and whether the run waits for another of them. Only `waiting` changes.
    concurrency_group text,
    waiting           boolean          not null default false,
    -- Added to the priority of each of the run's tasks.
    priority          integer          not null default 0,
    constraint a_run_is_in_a_known_state check (
        state in ('queued', 'running', 'paused', 'stalled', 'succeeded', 'failed', 'cancelled')
    ),
    constraint a_finished_run_has_a_time check (
        (state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)
    ),
    constraint a_finished_run_is_not_rechecked check (finished_at is null or recheck_at is null),
    constraint a_run_starts_after_it_was_created check (started_at >= created_at),
    constraint a_run_finishes_after_it_started check (finished_at >= coalesce(started_at, created_at)),
    constraint a_run_counts_each_task_state check (cardinality(counts) = 12 and 0 <= all (counts)),
    constraint a_run_counts_from_zero check (revision >= 0 and failures >= 0 and events >= 0),
    constraint a_parent_is_a_task_at_an_attempt check (
        num_nulls(parent_run, parent_idx, parent_attempt, parent_waits) in (0, 4)
    ),
    constraint a_parent_counts_from_zero check (parent_idx >= 0 and parent_attempt >= 0),
    constraint a_run_is_not_its_own_parent check (parent_run <> id),
    constraint a_run_with_a_parent_is_below_it check (depth >= 0 and (parent_run is null or depth >= 1)),
    constraint only_a_run_in_a_concurrency_group_waits check (concurrency_group is not null or not waiting),
    constraint a_priority_is_a_small_number check (priority between -100 and 100)
) with (fillfactor = 70);

-- Whether a run with these counts only waits: some task sleeps or is up for retry, and none is queued, dispatched or
-- running. `Counts::is_asleep` decides the same in the code.
create function is_asleep(counts integer[]) returns boolean language sql immutable
    return counts[5] + counts[6] > 0 and counts[2] + counts[3] + counts[4] = 0;

create unique index one_run_per_workflow_schedule_and_date on runs (tenant, workflow, logical_date, schedule)
    where logical_date is not null;
create index runs_by_age on runs (tenant, created_at desc, id desc);
create index runs_of_a_workflow_by_age on runs (tenant, workflow, created_at desc, id desc);
create index runs_in_a_state_by_age on runs (tenant, state, created_at desc, id desc);
create index runs_by_end on runs (tenant, finished_at desc, id desc) where finished_at is not null;
-- The runs that the tasks of a run started. A run's parent never changes, so steps do not touch the index.
create index runs_by_parent on runs (parent_run, created_at desc, id desc) where parent_run is not null;
create index unfinished_runs_of_a_concurrency_group on runs (tenant, workflow, concurrency_group, created_at, id)
    where finished_at is null and concurrency_group is not null;
create index runs_to_recheck on runs (recheck_at) where recheck_at is not null;
-- Unfinished runs without a recheck: those that only wait, and those that were lost. Steps of a run touch none of its
-- columns.
create index runs_without_recheck on runs (id) where finished_at is null and recheck_at is null;
-- The runs that an inspection reads, in id order. Steps of a run touch none of its columns.
create index unfinished_runs on runs (id) where finished_at is null;
-- The order in which runs end is the order in which retention deletes them.
create index ended_runs on runs (state, finished_at, id) where finished_at is not null;

-- What a run was created with: never changed and not read by its steps, and so a separate table.
create table run_facts (
    run            uuid not null primary key references runs,
    inputs         json not null,
    labels         json not null,
    trigger_kind   text not null,
    trigger_by     text not null,
    -- The schedule of a planned run, and the interval that it covers.
    schedule       text,
    interval_start timestamptz,
    interval_end   timestamptz,
    constraint inputs_and_labels_are_objects check (
        json_typeof(inputs) = 'object' and json_typeof(labels) = 'object'
    ),
    constraint a_run_of_a_schedule_has_an_interval check (
        num_nulls(schedule, interval_start, interval_end) in (0, 3) and interval_start <= interval_end
    )
);

-- A row for each label of a run, as `name=value`; one that is too long for an index keeps its beginning and a hash of
-- all of it.
create table run_labels (
    tenant     integer          not null,
    label      text collate "C" not null,
    created_at timestamptz      not null,
    run        uuid             not null,
    primary key (tenant, label, created_at, run)
);

create index run_labels_of_runs on run_labels (run);

-- One row per task of a run. Only claiming touches an index beside the key's; none may be added.
--
-- A child of a fan-out has the fan-out's index and the position of its item; a fan-out has its progress. Only a
-- fan-out has an array, so the rows of other tasks stay small. A child has no foreign key to its fan-out: ten thousand
-- are created at once, and without an index each deleted row would cause a scan of all tasks of the run.
create table tasks (
    run               uuid        not null references runs,
    idx               integer     not null,
    tenant            integer     not null,
    state             text        not null,
    attempt           integer     not null,
    revision          integer     not null,
    parents_done      integer     not null,
    parents_succeeded integer     not null,
    parents_failed    integer     not null,
    parents_skipped   integer     not null,
    worker            uuid,
    since             timestamptz not null,
    started_at        timestamptz,
    finished_at       timestamptz,
    failure           json,
    child_of          integer,
    item              integer,
    -- The first child, then the number of children that exist, may start, ended, succeeded, failed and were skipped.
    fan               integer[],
    begun_at          timestamptz,
    -- Attempts that were handed back use no retry, but keep their numbers.
    handed_back       integer     not null default 0,
    -- The last attempt before the task was cleared; 0 if it never was. The outputs of attempts up to it do not count.
    voided            integer     not null default 0,
    primary key (run, idx),
    constraint a_task_is_in_a_known_state check (
        state in ('pending', 'queued', 'dispatched', 'running', 'sleeping', 'up_for_retry', 'succeeded',
                  'failed', 'upstream_failed', 'skipped', 'cancelled', 'removed')
    ),
    constraint a_finished_task_has_a_time check (
        (state in ('succeeded', 'failed', 'upstream_failed', 'skipped', 'cancelled', 'removed'))
        = (finished_at is not null)
    ),
    constraint only_a_running_task_has_a_worker check (worker is null or state = 'running'),
    constraint a_task_finishes_after_it_started check (finished_at >= started_at),
    constraint a_task_counts_from_zero check (idx >= 0 and attempt >= 0 and revision >= 0),
    constraint a_parent_ends_in_one_way check (
        parents_succeeded >= 0 and parents_failed >= 0 and parents_skipped >= 0
        and parents_succeeded + parents_failed + parents_skipped <= parents_done
    ),
    constraint a_child_has_a_fan_out_and_a_position check ((child_of is null) = (item is null)),
    constraint a_child_comes_after_its_fan_out check (child_of >= 0 and child_of < idx and item >= 0),
    constraint a_fan_out_counts_its_children check (
        cardinality(fan) = 7 and 0 <= all (fan)
        and fan[3] <= fan[2] and fan[4] <= fan[2] and fan[5] + fan[6] + fan[7] <= fan[4]
    ),
    constraint children_come_after_their_fan_out check (fan[2] = 0 or fan[1] > idx),
    constraint only_an_attempt_begins_a_task check (begun_at is null or attempt >= 1),
    constraint a_task_finishes_after_it_began check (finished_at >= begun_at),
    constraint only_attempts_are_handed_back check (handed_back between 0 and attempt),
    constraint only_attempts_that_were_made_are_void check (voided >= 0 and voided <= attempt)
) with (fillfactor = 70);

create index tasks_held_by_workers on tasks (worker) where worker is not null;

-- The items of children: written once and possibly large, and so a separate table. As with outputs, there are no foreign
-- keys.
create table items (
    run  uuid    not null,
    idx  integer not null,
    item json    not null,
    primary key (run, idx),
    constraint an_item_belongs_to_a_task check (idx >= 0)
);

-- A signal that arrived before any task waited for it. The first task that waits receives it; of two with the same name,
-- the later one is stored.
create table signals (
    run     uuid not null references runs,
    name    text not null,
    payload json not null,
    primary key (run, name),
    constraint a_signal_has_a_name check (name <> '')
);

-- The last checkpoint of a task, as its program or remote worker reported it: the next attempt starts from it.
create table checkpoints (
    run     uuid        not null,
    idx     integer     not null,
    attempt integer     not null,
    at      timestamptz not null,
    data    json        not null,
    primary key (run, idx),
    constraint a_checkpoint_counts_from_one check (idx >= 0 and attempt >= 1)
);

-- What an attempt reports about how far it has come: the last value of its progress, and a short series of each metric. Most
-- attempts report nothing and have no row.
create table progress (
    run      uuid             not null,
    idx      integer          not null,
    attempt  integer          not null,
    at       timestamptz      not null,
    fraction double precision,
    message  text,
    phase    text,
    metrics  json             not null,
    -- The change feed finds what is new by the transaction that wrote it.
    tx       xid8             not null default pg_current_xact_id(),
    primary key (run, idx, attempt),
    constraint progress_counts_from_one check (idx >= 0 and attempt >= 1),
    constraint a_fraction_is_between_zero_and_one check (fraction between 0 and 1),
    constraint a_message_has_a_fraction check (message is null or fraction is not null)
);

create index progress_feed on progress (tx);

-- A task that several runs share, and the task that executes or executed it. The row is deleted if the execution fails. It
-- may exist before and after the owner's run, so there are no foreign keys to runs.
create table shared_tasks (
    tenant      integer          not null references tenants,
    name        text collate "C" not null,
    key         text collate "C" not null,
    owner_run   uuid             not null,
    owner_idx   integer          not null,
    -- Null until it has succeeded.
    finished_at timestamptz,
    primary key (tenant, name, key),
    constraint a_shared_task_has_a_name check (name <> ''),
    constraint an_owner_is_a_task check (owner_idx >= 0)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index shared_tasks_by_owner on shared_tasks (owner_run, owner_idx);

-- Tasks that wait for a shared one which another task executes. A task waits for one at a time.
create table shared_task_waiters (
    run       uuid    not null,
    idx       integer not null,
    attempt   integer not null,
    owner_run uuid    not null,
    owner_idx integer not null,
    primary key (run, idx),
    constraint a_waiter_counts_from_zero check (idx >= 0 and attempt >= 0 and owner_idx >= 0),
    constraint nothing_waits_for_itself check ((run, idx) <> (owner_run, owner_idx))
) with (autovacuum_vacuum_scale_factor = 0.02);

create index shared_task_waiters_by_owner on shared_task_waiters (owner_run, owner_idx, run, idx);
