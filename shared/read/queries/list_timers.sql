-- A page of a tenant's pending timers, the next one first. A filter that is null lets everything pass.
select timers.run, timers.idx, timers.attempt, timers.kind, timers.wake_at, runs.workflow, runs.version,
       tasks.child_of, tasks.item
  from timers
  join runs on runs.id = timers.run
  left join tasks on tasks.run = timers.run and tasks.idx = timers.task
 where runs.tenant = $1
   and ($2::uuid is null or timers.run = $2)
   and ($3::text is null or runs.workflow = $3)
   and ($4::timestamptz is null
        or (timers.wake_at, timers.run, timers.idx, timers.kind collate "C") > ($4, $5::uuid, $6::int, $7::text collate "C"))
   and timers.wake_at >= coalesce($4, '-infinity')
 order by timers.wake_at, timers.run, timers.idx, timers.kind collate "C"
 limit $8
