-- When the first of each kind of thing is due. A worker that holds an attempt and is dead or not registered counts as
-- silent since the epoch. Of the runs without a recheck, the first hundred are searched for one that does not only wait: however many
-- wait, that costs little.
select (select min(wake_at) from timers) as timer,
       least((select min(wake_at) from timers where wake_at > $1),
             (select min(due_at) from schedules where due_at > $1),
             (select min(due_at) from backfills where due_at > $1)) as next_timer,
       (select min(due_at) from schedules where due_at is not null) as schedule,
       (select min(due_at) from backfills where due_at is not null) as backfill,
       (select min(recheck_at) from runs where recheck_at is not null) as recheck,
       (select created_at from outbox order by id limit 1) as unsent,
       (select min(granted_at) from slot_waiters where granted_at is not null) as granted,
       (select min(open_until) from breakers where opened_at is not null and not probing) as breaker,
       exists (select from limits where waiting > 0 and (slots is null or used < slots)) as room,
       least((select min(heartbeat_at) from workers where dead_at is null),
             (select timestamptz 'epoch'
               where exists (select from tasks
                              where worker is not null
                                and not exists (select from workers
                                                 where workers.id = tasks.worker and dead_at is null)))) as worker,
       (select next_at from retention_pass) as retention,
       (select min(due_at) from triggers where due_at is not null and paused_at is null) as trigger,
       exists (select from (select counts from runs
                             where finished_at is null and recheck_at is null
                             order by id limit 100) as unseen
                where not is_asleep(counts)) as neglected,
       (select filter from log_filters where function = 'sweep' and until > $1) as log_filter
