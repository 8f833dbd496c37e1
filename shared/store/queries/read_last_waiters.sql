-- The last waiters of groups.
select last.run, last.idx, last.attempt, last.tenant, last.backfill, last.step, last.needs, last.id, last.rank,
       last.since, last.granted_at
  from unnest($1::int[], $2::int[], $3::uuid[], $4::bigint[]) as given (lim, tenant, backfill, gone)
 cross join lateral (
     select * from slot_waiters
      where slot_waiters.lim = given.lim and slot_waiters.tenant = given.tenant and slot_waiters.backfill = given.backfill
        and granted_at is null
      order by id desc, rank desc, run desc, idx desc
      limit given.gone
 ) as last
