-- The first $3 tasks that have their slots, of a tenant's oldest unfinished runs.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.since, tasks.worker, tasks.child_of, tasks.item,
       runs.workflow, runs.version
  from (select id, workflow, version from runs
         where finished_at is null and tenant = $1
         order by id
         limit $2) as runs
  join tasks on tasks.run = runs.id
 where tasks.state = any($4)
 order by tasks.run, tasks.idx
 limit $3
