-- Attempts whose worker was last heard of before the given instant, never registered, or has left.
select tasks.run, tasks.idx, tasks.attempt, tasks.worker
  from tasks
  left join workers on workers.id = tasks.worker
 where tasks.worker is not null
   and (workers.heard_at is null or workers.heard_at < $1)
 order by tasks.run, tasks.idx
 limit $2
