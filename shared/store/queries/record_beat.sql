-- Records a worker's heartbeat and returns its command and the attempts that it still holds, in at least one row. Of two
-- heartbeats that overtake each other, the later instant stands.
with beat as (
    insert into workers (id, heartbeat_at, function, queue, host, version, since, breakers, remote)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict (id) do update
       -- A clock that was turned back must not make a living worker look silent.
       set heartbeat_at = case when excluded.heartbeat_at < workers.heartbeat_at
                           then workers.heartbeat_at + interval '1 microsecond' else excluded.heartbeat_at end,
           function = coalesce(excluded.function, workers.function),
           queue    = coalesce(excluded.queue, workers.queue),
           host     = coalesce(excluded.host, workers.host),
           version  = coalesce(excluded.version, workers.version),
           since    = coalesce(excluded.since, workers.since),
           breakers = coalesce(excluded.breakers, workers.breakers),
           remote   = coalesce(excluded.remote, workers.remote),
           dead_at  = null
    returning command, commanded_by, command_reason, commanded_at
)
select beat.*, tasks.run, tasks.idx, tasks.attempt, tasks.worker
    from beat
  left join tasks on tasks.worker = $1
 order by tasks.run, tasks.idx
