-- Records that a worker lives and returns what it was told to do and the attempts that are really its own, in one row
-- at least. Of two beats that overtake each other, the later instant stands.
with heard as (
    insert into workers (id, heard_at, function, queue, host, version, since, breakers)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (id) do update
       -- A clock that was turned back must not make a living worker look silent.
       set heard_at = case when excluded.heard_at < workers.heard_at
                           then workers.heard_at + interval '1 microsecond' else excluded.heard_at end,
           function = coalesce(excluded.function, workers.function),
           queue    = coalesce(excluded.queue, workers.queue),
           host     = coalesce(excluded.host, workers.host),
           version  = coalesce(excluded.version, workers.version),
           since    = coalesce(excluded.since, workers.since),
           breakers = coalesce(excluded.breakers, workers.breakers)
    returning ordered, ordered_by, ordered_reason, ordered_at
)
select heard.*, tasks.run, tasks.idx, tasks.attempt, tasks.worker
  from heard
  left join tasks on tasks.worker = $1
 order by tasks.run, tasks.idx
