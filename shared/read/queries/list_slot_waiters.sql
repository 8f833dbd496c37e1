-- The tasks of a tenant in the wait queue of a limit, the next one first.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.since, tasks.worker, tasks.child_of, tasks.item,
       runs.workflow, runs.version
  from limits
  join slot_waiters on slot_waiters.lim = limits.id
  join runs on runs.id = slot_waiters.run
  join tasks on tasks.run = slot_waiters.run and tasks.idx = slot_waiters.idx
 where limits.kind = $1 and limits.tenant = $2 and limits.name = $3
   and slot_waiters.tenant = $4 and slot_waiters.granted_at is null
 order by slot_waiters.id, slot_waiters.rank, slot_waiters.run, slot_waiters.idx
 limit $5
