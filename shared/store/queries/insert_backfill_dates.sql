-- The dates of a backfill, which wait for their turns.
insert into backfill_dates (backfill, date, interval_start, state, run, redo)
select $1, date, interval_start, 'waiting', run, redo
  from unnest($2::timestamptz[], $3::timestamptz[], $4::uuid[], $5::boolean[])
       as dates (date, interval_start, run, redo)
