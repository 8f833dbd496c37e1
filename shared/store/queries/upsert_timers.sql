-- Sets timers. Nothing has two of one kind: a later one takes the place of an earlier one.
insert into timers (run, idx, attempt, kind, wake_at)
select run, idx, attempt, kind, wake_at
  from unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::timestamptz[])
    as given (run, idx, attempt, kind, wake_at)
    on conflict (run, idx, kind) do update
   set attempt = excluded.attempt,
       wake_at = excluded.wake_at
