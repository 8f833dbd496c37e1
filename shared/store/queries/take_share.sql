-- Asks for a shared task. A run that finds no row, or one that succeeded too long ago, becomes its owner; for any other run
-- the row stays as it is. In any case the row is locked: a second run waits until the first one's transaction ends, and
-- reads the row as committed. Whatever the run waited for before, it no longer does.
with over as (
    delete from shared_task_waiters where run = $4 and idx = $5
)
insert into shared_tasks as existing (tenant, name, key, owner_run, owner_idx)
values ($1, $2, $3, $4, $5)
    on conflict (tenant, name, key) do update
   set owner_run   = case when existing.finished_at < $6 then excluded.owner_run else existing.owner_run end,
       owner_idx   = case when existing.finished_at < $6 then excluded.owner_idx else existing.owner_idx end,
       finished_at = case when existing.finished_at < $6 then null else existing.finished_at end
returning owner_run, owner_idx, finished_at
