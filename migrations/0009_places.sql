-- How many tasks are under way at the same time, and who is next.

-- How often a tenant comes in each round of a line.
alter table tenants
    add column weight integer not null default 1,
    add constraint a_weight_is_a_small_number check (weight between 1 and 1000),
    -- Ids of a line are a tenant's number plus whole blocks of this size.
    add constraint there_are_fewer_tenants_than_a_block_has_ids check (id < 1048576);

-- Added to the priority of each of the run's tasks.
alter table runs
    add column priority integer not null default 0,
    add constraint a_priority_is_a_small_number check (priority between -100 and 100);

-- A limit and its places. Hot: few rows, updated often, none of the indexed columns ever.
create table limits (
    id       integer          not null generated always as identity primary key,
    kind     text             not null,
    -- 0 where all tenants share it.
    tenant   integer          not null,
    name     text collate "C" not null,
    -- Null if there is no bound.
    places   integer,
    used     integer          not null default 0,
    -- How many stand in its line, and the block of whoever was given a place last.
    waiting  integer          not null default 0,
    frontier bigint           not null default 0,
    constraint a_limit_is_there_once unique (kind, tenant, name),
    constraint a_limit_is_of_a_known_kind check (kind in ('pool', 'workflow', 'tenant', 'queue')),
    constraint only_a_queue_is_shared_by_all check ((kind = 'queue') = (tenant = 0)),
    constraint only_a_tenant_has_no_name_here check ((kind = 'tenant') = (name = '')),
    constraint places_are_counted_from_zero check (places >= 0 and used >= 0 and waiting >= 0 and frontier >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Tasks that wait for a place, and tasks that were granted theirs and have not taken them over. Read in the order of
-- ids, tenants take turns.
create table line (
    run        uuid        not null,
    idx        integer     not null,
    attempt    integer     not null,
    tenant     integer     not null references tenants,
    -- In whose line, which of the needs that is, and all of them in order; there is a place of each before that one.
    lim        integer     not null references limits,
    step       integer     not null,
    needs      integer[]   not null,
    -- The tenant's number, plus whole blocks.
    id         bigint      not null,
    -- The order within the tenant: since when, and by its priority earlier or later.
    rank       bigint      not null,
    since      timestamptz not null,
    granted_at timestamptz,
    primary key (run, idx),
    constraint a_line_counts_from_zero check (idx >= 0 and attempt >= 1 and step >= 0 and id >= 0),
    constraint who_waits_waits_for_one_of_its_needs check (needs[step + 1] = lim)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index line_in_order on line (lim, id, rank, run, idx) where granted_at is null;
create index line_by_tenant on line (lim, tenant, rank, id, run, idx) where granted_at is null;
create index line_granted on line (granted_at) where granted_at is not null;

-- Where a tenant's next task goes in a line, and how many were given a place from it.
create table standings (
    lim      integer not null references limits,
    tenant   integer not null references tenants,
    position bigint  not null,
    received bigint  not null,
    primary key (lim, tenant),
    constraint standings_count_from_zero check (position >= 0 and received >= 0)
) with (fillfactor = 50);
