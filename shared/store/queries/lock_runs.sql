-- Locks runs in id order, so that units that lock several cannot wait for each other in a circle. A run
-- that had to be waited for is returned as it is after the wait.
select id, tenant, workflow, version, state, revision, counts, failures, events,
       created_at, started_at, finished_at, error,
       parent_run, parent_idx, parent_attempt, parent_waits, depth, concurrency_group, waiting, priority
  from runs
 where id = any($1)
 order by id
   for update
