-- Workers, limits on concurrent tasks, and wait queues.

-- A worker exists from its first heartbeat until it deregisters. Heartbeats carry its facts; a worker that is only known by
-- a claim has none. It receives a command in its row with the next heartbeat.
create table workers (
    id             uuid        not null primary key,
    heartbeat_at   timestamptz not null,
    function       text,
    queue          text,
    host           text,
    version        text,
    since          timestamptz,
    command        text,
    commanded_by   text,
    command_reason text,
    commanded_at   timestamptz,
    -- Its open circuit breakers: the hosts, and since and until when.
    breakers       json,
    -- What a remote worker reports about itself: tenant, name, slots, labels, types, usage.
    remote         json,
    tasks_done     bigint      not null default 0,
    -- When the sweep declared it dead. It then holds nothing, and is listed for a day.
    dead_at        timestamptz,
    constraint a_worker_command_is_drain_or_kill check (command in ('drain', 'kill')),
    constraint a_worker_command_has_an_actor_and_a_time check (num_nulls(command, commanded_by, commanded_at) in (0, 3))
) with (fillfactor = 50);

-- Dispatched tasks of remote queues, for workers that may take them. Each row follows from its task's, and is written and
-- deleted in the same transaction. Only `reserved_until` is ever updated, which no index has.
create table offers (
    run            uuid             not null,
    idx            integer          not null,
    attempt        integer          not null,
    tenant         integer          not null references tenants,
    queue          text collate "C" not null,
    -- What decides who may take it: the workflow, the task type, and the labels that a worker must have, as JSON with its
    -- names in order.
    workflow       text collate "C" not null,
    kind           text collate "C" not null,
    requires       text collate "C" not null,
    -- The backfill whose turn it takes; nil for a live task.
    backfill       uuid             not null default '00000000-0000-0000-0000-000000000000',
    -- The order within the fairness group: since when, and by its priority earlier or later.
    rank           bigint           not null,
    -- Until then a lease has it: the lease claims the task, or ends with its process.
    reserved_until timestamptz,
    primary key (run, idx),
    constraint an_offer_counts_from_zero check (idx >= 0 and attempt >= 1)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

create index offers_in_order on offers (tenant, queue, workflow, backfill, kind, requires, rank, run, idx);

-- A limit and its slots. Hot: few rows, updated often, but never their indexed columns.
create table limits (
    id       integer          not null generated always as identity primary key,
    kind     text             not null,
    -- 0 if all tenants share it.
    tenant   integer          not null,
    name     text collate "C" not null,
    -- Null for unlimited.
    slots    integer,
    used     integer          not null default 0,
    -- The number of waiting tasks, and the position of the last one that was granted a slot. A position and not only its block,
    -- so that a newcomer gets no turn in a round in which its turns are over.
    waiting  integer          not null default 0,
    frontier bigint           not null default 0,
    constraint a_limit_is_there_once unique (kind, tenant, name),
    constraint a_limit_is_of_a_known_kind check (kind in ('breaker', 'pool', 'workflow', 'tenant', 'queue')),
    constraint only_a_queue_is_shared_by_all check ((kind = 'queue') = (tenant = 0)),
    constraint only_a_tenant_has_no_name_here check ((kind = 'tenant') = (name = '')),
    constraint slots_are_counted_from_zero check (slots >= 0 and used >= 0 and waiting >= 0),
    constraint a_frontier_counts_from_zero check (frontier >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Circuit breakers that remember a failure; one without a row is closed. That of a task takes the slots of the limit of its name away.
create table breakers (
    id            bigint           not null generated always as identity primary key,
    tenant        integer          not null references tenants,
    kind          text             not null,
    -- WORKFLOW/TASK, or HOST:PORT.
    name          text collate "C" not null,
    -- When the failures that count happened, oldest first, and what the last one said.
    failed_at     timestamptz[]    not null default '{}',
    message       text             not null default '',
    -- Null while it is closed. During a probe, `open_until` is when another one may begin.
    opened_at     timestamptz,
    open_until    timestamptz,
    pause_seconds integer,
    probing       boolean          not null default false,
    constraint a_breaker_is_there_once unique (tenant, kind, name),
    constraint a_breaker_is_of_a_known_kind check (kind in ('task', 'host')),
    constraint an_open_breaker_has_its_times check (num_nulls(opened_at, open_until, pause_seconds) in (0, 3)),
    constraint only_an_open_breaker_probes check (opened_at is not null or not probing)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

create index breakers_by_time on breakers (open_until) where opened_at is not null and not probing;

-- Tasks that wait for a slot, and tasks that were granted one and are not notified yet. In the order of positions, tenants
-- take turns.
create table slot_waiters (
    run        uuid        not null,
    idx        integer     not null,
    attempt    integer     not null,
    tenant     integer     not null references tenants,
    -- The limit it waits for, which of its needs that is, and all of them in order; it has a slot of each before that.
    lim        integer     not null references limits,
    step       integer     not null,
    needs      integer[]   not null,
    -- The tenant's number, plus whole blocks.
    id         bigint      not null,
    -- The order within the tenant: since when, and by its priority earlier or later.
    rank       bigint      not null,
    since      timestamptz not null,
    granted_at timestamptz,
    -- The backfill whose turn it takes; nil for a live task.
    backfill   uuid        not null default '00000000-0000-0000-0000-000000000000',
    primary key (run, idx),
    constraint a_slot_waiter_counts_from_zero check (idx >= 0 and attempt >= 1 and step >= 0 and id >= 0),
    constraint a_slot_waiter_waits_for_one_of_its_needs check (needs[step + 1] = lim)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index slot_waiters_in_order on slot_waiters (lim, id, rank, run, idx) where granted_at is null;
create index slot_waiters_by_fairness_group on slot_waiters (lim, tenant, backfill, rank, id, run, idx) where granted_at is null;
-- The last task of a fairness group, which takes the turn of one that leaves.
create index slot_waiters_by_end on slot_waiters (lim, tenant, backfill, id, rank, run, idx) where granted_at is null;
create index slot_waiters_granted on slot_waiters (granted_at) where granted_at is not null;

-- The position of a tenant's next task in a wait queue, and the number of slots that it was granted.
create table fairness_groups (
    lim      integer not null references limits,
    tenant   integer not null references tenants,
    position bigint  not null,
    received bigint  not null,
    -- The minute (since 1970) of the last granted slot, and the number of slots granted in that minute and the one before.
    pace     int[]   not null default '{0,0,0}',
    primary key (lim, tenant),
    constraint a_fairness_group_counts_from_zero check (position >= 0 and received >= 0),
    constraint a_pace_is_a_minute_and_two_counts check (cardinality(pace) = 3 and 0 <= all (pace))
) with (fillfactor = 50);

-- A backfill has its own turns in every wait queue, in addition to those of its tenant's live tasks.
create table backfill_fairness_groups (
    lim      integer not null references limits,
    backfill uuid    not null references backfills on delete cascade,
    position bigint  not null,
    received bigint  not null,
    pace     int[]   not null default '{0,0,0}',
    primary key (lim, backfill),
    constraint a_backfill_fairness_group_counts_from_zero check (position >= 0 and received >= 0),
    constraint a_pace_is_a_minute_and_two_counts check (cardinality(pace) = 3 and 0 <= all (pace))
) with (fillfactor = 50);
