-- The tasks that have their slots, of a tenant's oldest unfinished runs.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.revision,
       tasks.parents_done, tasks.parents_succeeded, tasks.parents_failed, tasks.parents_skipped,
       tasks.worker, tasks.since, tasks.started_at, tasks.finished_at, tasks.failure,
       tasks.child_of, tasks.item, tasks.fan, tasks.begun_at, tasks.handed_back, tasks.voided,
       runs.workflow, runs.version
  from (select id, workflow, version from runs
         where finished_at is null and tenant = $1
         order by id
         limit $2) as runs
  join tasks on tasks.run = runs.id
 where tasks.state = any($3)
 order by tasks.run, tasks.idx
