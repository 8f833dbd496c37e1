-- How far backfills have come in lines. One that has been forgotten is not remembered for its runs that are done anew.
insert into backfill_standings (lim, backfill, position, received)
select lim, backfill, position, received
  from unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[]) as given (lim, backfill, position, received)
  join backfills on backfills.id = given.backfill
    on conflict (lim, backfill) do update set position = excluded.position, received = excluded.received
