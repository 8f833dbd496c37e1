-- How much there is of everything: unfinished runs by state, the sums of the task counters of each tenant by their position
-- in the array, since when its first task waits for a slot, the oldest unsent message and timer,
-- and the breakers that let nothing through. It reads only what is
-- unfinished.
with unfinished as materialized (select tenant, state, counts from runs where finished_at is null)
select (select coalesce(json_object_agg(state, number), '{}')
          from (select state, count(*) as number from unfinished group by state) as counted) as runs,
       (select coalesce(json_agg(json_build_array(
                 tenants.name,
                 (select coalesce(json_object_agg(place, number), '{}')
                    from (select place, sum(number) as number
                            from unfinished, unnest(counts) with ordinality as each (number, place)
                           where unfinished.tenant = tenants.id
                           group by place) as counted),
                 (select min(since) from slot_waiters where slot_waiters.tenant = tenants.id and granted_at is null))
                 order by tenants.name collate "C"), '[]')
          from tenants) as tenants,
       (select created_at from outbox order by id limit 1) as unsent,
       (select min(wake_at) from timers) as timer,
       (select count(*)::int from (select from dead_letters limit $1) as kept) as dead_letters,
       (select count(*)::int from breakers where opened_at is not null and not probing) as breakers,
       (select coalesce(json_object_agg(queue, number), '{}')
          from (select coalesce(queue, $2::text) as queue, count(*) as number from workers where dead_at is null group by 1) as counted) as workers
