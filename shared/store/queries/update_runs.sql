-- Writes runs, each only over the revision it was read at. A run that was changed in between matches no
-- row: whoever asked must count the rows, and give up everything if one is missing. What is looked at by
-- the sweep stays as it is where `keep` says so, unless an earlier time is given: then no index is touched.
update runs
   set state       = given.state,
       revision    = runs.revision + 1,
       counts      = given.counts::int[],
       failures    = given.failures,
       events      = given.events,
       started_at  = given.started_at,
       finished_at = given.finished_at,
       error       = given.error,
       held        = given.held,
       checkup_at  = case when given.keep then least(runs.checkup_at, given.checkup_at) else given.checkup_at end
  from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::int[], $6::bigint[],
              $7::timestamptz[], $8::timestamptz[], $9::text[], $10::boolean[], $11::timestamptz[],
              $12::boolean[])
    as given (id, revision, state, counts, failures, events,
              started_at, finished_at, error, keep, checkup_at, held)
 where runs.id = given.id and runs.revision = given.revision
