-- What is under way: small rows that are updated often, with room on their pages (fillfactor) for updates
-- that touch no index.

-- One row per run. Locking it locks everything in the run.
create table runs (
    id           uuid             not null primary key,
    tenant       integer          not null references tenants,
    workflow     text collate "C" not null,
    version      bigint           not null references versions,
    state        text             not null,
    revision     integer          not null,
    -- How many tasks are in each state, in the order in which the code lists the states.
    counts       integer[]        not null,
    failures     integer          not null,
    events       bigint           not null,
    created_at   timestamptz      not null,
    started_at   timestamptz,
    finished_at  timestamptz,
    error        text,
    -- When the sweep should look at the run. Steps of a run leave it alone, so that they touch no index.
    checkup_at   timestamptz,
    logical_date timestamptz,
    constraint a_run_is_in_a_known_state check (
        state in ('queued', 'running', 'paused', 'stalled', 'succeeded', 'failed', 'cancelled')
    ),
    constraint a_finished_run_has_a_time check (
        (state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null)
    ),
    constraint a_finished_run_is_not_looked_at check (finished_at is null or checkup_at is null),
    constraint a_run_starts_after_it_was_created check (started_at >= created_at),
    constraint a_run_finishes_after_it_started check (finished_at >= coalesce(started_at, created_at)),
    constraint a_run_counts_each_task_state check (cardinality(counts) = 12 and 0 <= all (counts)),
    constraint a_run_counts_from_zero check (revision >= 0 and failures >= 0 and events >= 0)
) with (fillfactor = 70);

create unique index one_run_per_workflow_and_date on runs (tenant, workflow, logical_date)
    where logical_date is not null;
create index runs_to_look_at on runs (checkup_at) where checkup_at is not null;
create index runs_by_age on runs (tenant, created_at desc, id desc);
create index runs_of_a_workflow_by_age on runs (tenant, workflow, created_at desc, id desc);
create index runs_in_a_state_by_age on runs (tenant, state, created_at desc, id desc);

-- What a run was created with: never changed, not read by its steps, and so kept apart.
create table run_facts (
    run          uuid not null primary key references runs,
    inputs       json not null,
    labels       json not null,
    trigger_kind text not null,
    trigger_by   text not null,
    constraint inputs_and_labels_are_objects check (
        json_typeof(inputs) = 'object' and json_typeof(labels) = 'object'
    )
);

-- One row per task of a run. Only claiming touches an index beside the key's; none may be added.
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
    )
) with (fillfactor = 70);

create index tasks_held_by_workers on tasks (worker) where worker is not null;
