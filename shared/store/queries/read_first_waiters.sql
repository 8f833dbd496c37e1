-- The first waiters of limits, as many as there are free slots, and as many of the lowest rank in their groups: a turn
-- belongs to the group, and its best waiter takes it.
with heads as (
    select head.*
      from unnest($1::int[], $2::bigint[]) as given (lim, room)
     cross join lateral (
         select * from slot_waiters
          where slot_waiters.lim = given.lim and granted_at is null
          order by id, rank, run, idx
          limit given.room
     ) as head
), turns as (
    select lim, tenant, backfill, count(*) as turns from heads group by lim, tenant, backfill
)
select run, idx, attempt, tenant, backfill, step, needs, id, rank, since, granted_at from heads
union
select best.run, best.idx, best.attempt, best.tenant, best.backfill, best.step, best.needs, best.id, best.rank,
       best.since, best.granted_at
  from turns
 cross join lateral (
     select * from slot_waiters
      where slot_waiters.lim = turns.lim and slot_waiters.tenant = turns.tenant and slot_waiters.backfill = turns.backfill
        and granted_at is null
      order by rank, id, run, idx
      limit turns.turns
 ) as best
