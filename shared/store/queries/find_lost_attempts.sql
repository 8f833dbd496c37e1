-- Attempts whose worker never registered, has left, is dead, or is one of those given and has sent no heartbeat since the one given.
select tasks.run, tasks.idx, tasks.attempt, tasks.worker
  from tasks
  left join workers on workers.id = tasks.worker
 where tasks.worker is not null
   and (workers.id is null
        or workers.dead_at is not null
        or exists (select from unnest($1::uuid[], $2::timestamptz[]) as silent (id, heartbeat_at)
                    where silent.id = workers.id and silent.heartbeat_at = workers.heartbeat_at))
 order by tasks.run, tasks.idx
 limit $3
