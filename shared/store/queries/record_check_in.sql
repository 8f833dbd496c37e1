-- Records that a remote worker asked for work, unless a sign of life was recorded less than $9 ago, and returns its command.
-- Leases are frequent, and most of them need not write.
with beat as (
    insert into workers (id, heartbeat_at, function, queue, host, version, since, remote)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (id) do update
       set heartbeat_at = greatest(workers.heartbeat_at + interval '1 microsecond', excluded.heartbeat_at),
           function = excluded.function,
           queue    = excluded.queue,
           host     = excluded.host,
           version  = excluded.version,
           since    = case when workers.dead_at is null then coalesce(workers.since, excluded.since)
                           else excluded.since end,
           remote   = excluded.remote,
           -- A worker that is back from the dead is another process of that name: commands were for the one before.
           command        = case when workers.dead_at is null then workers.command end,
           commanded_by   = case when workers.dead_at is null then workers.commanded_by end,
           command_reason = case when workers.dead_at is null then workers.command_reason end,
           commanded_at   = case when workers.dead_at is null then workers.commanded_at end,
           dead_at  = null
     where workers.dead_at is not null
        or workers.heartbeat_at <= excluded.heartbeat_at - make_interval(secs => $9)
    returning command, commanded_by, command_reason, commanded_at
)
select * from beat
 union all
select command, commanded_by, command_reason, commanded_at from workers where id = $1 and not exists (select from beat)
