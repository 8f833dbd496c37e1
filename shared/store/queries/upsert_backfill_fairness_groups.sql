-- The turns of backfills in wait queues. A backfill that was deleted gets no row when its runs are rerun.
insert into backfill_fairness_groups (lim, backfill, position, received, pace)
select lim, backfill, position, received, given.pace::int[]
  from unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[])
       as given (lim, backfill, position, received, pace)
  join backfills on backfills.id = given.backfill
    on conflict (lim, backfill) do update set position = excluded.position, received = excluded.received,
                                                   pace = excluded.pace
