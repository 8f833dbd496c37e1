-- Keeps attempts that are over. An attempt that was given up on and delivered after all is told again:
-- the later word about it stands.
insert into attempts (run, idx, attempt, state, worker, started_at, finished_at, failure, decision)
select run, idx, attempt, state, worker, started_at, finished_at, failure::json, decision
  from unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::uuid[],
              $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[])
    as given (run, idx, attempt, state, worker, started_at, finished_at, failure, decision)
    on conflict (run, idx, attempt) do update
   set state       = excluded.state,
       worker      = excluded.worker,
       started_at  = excluded.started_at,
       finished_at = excluded.finished_at,
       failure     = excluded.failure,
       decision    = excluded.decision
