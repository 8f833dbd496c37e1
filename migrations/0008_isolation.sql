-- Tenant isolation. Reads on behalf of a caller use the role `ebbflow_tenant`, which sees the rows of one tenant only: a statement
-- that forgets its tenant finds nothing of another. The engine owns the tables and is not restricted.

-- The role may only read, and only these tables.
grant select on tenants, workflows, versions, runs, run_facts, run_labels, tasks, outputs, attempts, events, logs, timers,
    items, shared_task_waiters, checkpoints, progress, schedules, backfills, backfill_dates, triggers, trigger_events, limits,
    slot_waiters, workers, offers, breakers to ebbflow_tenant;

-- The tenant of the read; null if none is set, so that no row is visible.
create function current_tenant() returns integer language sql stable
    return nullif(current_setting('ebb.tenant', true), '')::integer;

grant execute on function current_tenant() to ebbflow_tenant;

alter table tenants enable row level security;
alter table workflows enable row level security;
alter table versions enable row level security;
alter table runs enable row level security;
alter table run_facts enable row level security;
alter table run_labels enable row level security;
alter table tasks enable row level security;
alter table outputs enable row level security;
alter table attempts enable row level security;
alter table events enable row level security;
alter table logs enable row level security;
alter table timers enable row level security;
alter table items enable row level security;
alter table shared_task_waiters enable row level security;
alter table checkpoints enable row level security;
alter table progress enable row level security;
alter table schedules enable row level security;
alter table backfills enable row level security;
alter table backfill_dates enable row level security;
alter table triggers enable row level security;
alter table trigger_events enable row level security;
alter table limits enable row level security;
alter table slot_waiters enable row level security;
alter table workers enable row level security;
alter table offers enable row level security;
alter table breakers enable row level security;

-- The planner must not use a policy to find rows. No index serves `is not distinct from`; with `=`, and without statistics
-- about the table, it would scan all runs of a tenant even if a statement names a run by its key.
create policy of_one_tenant on tenants to ebbflow_tenant using (id is not distinct from (select current_tenant()));
create policy of_one_tenant on workflows to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on versions to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on runs to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on run_labels to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on tasks to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on schedules to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on backfills to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on triggers to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on trigger_events to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on slot_waiters to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
create policy of_one_tenant on offers to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));
-- Workers of the installation execute tasks of every tenant, and belong to none.
create policy of_one_tenant on workers to ebbflow_tenant
    using (remote is not null and (remote ->> 'tenant')::integer is not distinct from (select current_tenant()));
create policy of_one_tenant on breakers to ebbflow_tenant using (tenant is not distinct from (select current_tenant()));

-- Tenants share queues, which belong to none of them.
create policy of_one_tenant on limits to ebbflow_tenant
    using (tenant = 0 or tenant is not distinct from (select current_tenant()));

-- Rows of a run are visible if the run is, which is looked up by its key for each row. `offset 0` keeps the planner from
-- hashing all runs of the tenant first.
create policy of_one_tenant on run_facts to ebbflow_tenant
    using (exists (select from runs where runs.id = run_facts.run offset 0));
create policy of_one_tenant on outputs to ebbflow_tenant
    using (exists (select from runs where runs.id = outputs.run offset 0));
create policy of_one_tenant on attempts to ebbflow_tenant
    using (exists (select from runs where runs.id = attempts.run offset 0));
create policy of_one_tenant on events to ebbflow_tenant
    using (exists (select from runs where runs.id = events.run offset 0));
create policy of_one_tenant on logs to ebbflow_tenant
    using (exists (select from runs where runs.id = logs.run offset 0));
create policy of_one_tenant on timers to ebbflow_tenant
    using (exists (select from runs where runs.id = timers.run offset 0));
create policy of_one_tenant on items to ebbflow_tenant
    using (exists (select from runs where runs.id = items.run offset 0));
create policy of_one_tenant on shared_task_waiters to ebbflow_tenant
    using (exists (select from runs where runs.id = shared_task_waiters.run offset 0));
create policy of_one_tenant on checkpoints to ebbflow_tenant
    using (exists (select from runs where runs.id = checkpoints.run offset 0));
create policy of_one_tenant on progress to ebbflow_tenant
    using (exists (select from runs where runs.id = progress.run offset 0));
create policy of_one_tenant on backfill_dates to ebbflow_tenant
    using (exists (select from backfills where backfills.id = backfill_dates.backfill offset 0));

-- Tenants wait in one queue, and each may know how long it is and how many tasks come before its own, but not whose they
-- are: these functions count the rows of all tenants.
create function oldest_waiter(of_limit integer) returns timestamptz language sql stable security definer
    return (select min(since) from slot_waiters where lim = of_limit and granted_at is null);

create function waiters_ahead(waiter slot_waiters) returns bigint language sql stable security definer
    return (select count(*) from slot_waiters as other
             where other.lim = waiter.lim and other.granted_at is null
               and (other.id, other.rank, other.run, other.idx) < (waiter.id, waiter.rank, waiter.run, waiter.idx));
