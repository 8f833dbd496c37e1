-- The tasks of a tenant in the line of a limit, whoever comes first first.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.revision,
       tasks.parents_done, tasks.parents_succeeded, tasks.parents_failed, tasks.parents_skipped,
       tasks.worker, tasks.since, tasks.started_at, tasks.finished_at, tasks.failure,
       tasks.child_of, tasks.item, tasks.fan, tasks.begun_at, tasks.handed_back, tasks.voided,
       runs.workflow, runs.version
  from limits
  join line on line.lim = limits.id
  join runs on runs.id = line.run
  join tasks on tasks.run = line.run and tasks.idx = line.idx
 where limits.kind = $1 and limits.tenant = $2 and limits.name = $3
   and line.tenant = $4 and line.granted_at is null
 order by line.id, line.rank, line.run, line.idx
 limit $5
