-- How far backfills have come in lines. One that has been forgotten is not remembered for its runs that are done anew.
insert into backfill_fairness_groups (lim, backfill, position, received, pace)
select lim, backfill, position, received, given.pace::int[]
  from unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[])
       as given (lim, backfill, position, received, pace)
  join backfills on backfills.id = given.backfill
    on conflict (lim, backfill) do update set position = excluded.position, received = excluded.received,
                                                   pace = excluded.pace
