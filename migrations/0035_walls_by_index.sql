-- The wall between tenants is no way to find a row. Seen as one, it leads through all runs of a tenant where a statement
-- names a run by its key, as long as the planner knows little of the table.

-- No index serves this.
alter policy of_one_tenant on tenants using (id is not distinct from (select the_tenant()));
alter policy of_one_tenant on workflows using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on versions using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on runs using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on tasks using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on schedules using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on backfills using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on triggers using (tenant is not distinct from (select the_tenant()));
alter policy of_one_tenant on trigger_events using (tenant is not distinct from (select the_tenant()));

-- Whether a row's run is the tenant's is looked up by its key, row by row. `offset 0` keeps the planner from reading all
-- runs of the tenant into a hash first.
alter policy of_one_tenant on run_facts using (exists (select from runs where runs.id = run_facts.run offset 0));
alter policy of_one_tenant on outputs using (exists (select from runs where runs.id = outputs.run offset 0));
alter policy of_one_tenant on attempts using (exists (select from runs where runs.id = attempts.run offset 0));
alter policy of_one_tenant on events using (exists (select from runs where runs.id = events.run offset 0));
alter policy of_one_tenant on logs using (exists (select from runs where runs.id = logs.run offset 0));
alter policy of_one_tenant on timers using (exists (select from runs where runs.id = timers.run offset 0));
alter policy of_one_tenant on items using (exists (select from runs where runs.id = items.run offset 0));
alter policy of_one_tenant on waiters using (exists (select from runs where runs.id = waiters.run offset 0));
alter policy of_one_tenant on backfill_dates
    using (exists (select from backfills where backfills.id = backfill_dates.backfill offset 0));
