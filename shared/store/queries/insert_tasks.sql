-- Creates the tasks of a new run.
insert into tasks (run, idx, state, attempt, revision,
                   parents_done, parents_succeeded, parents_failed, parents_skipped,
                   worker, since, started_at, finished_at, failure, tenant)
select given.run, given.idx, given.state, given.attempt, given.revision,
       given.parents_done, given.parents_succeeded, given.parents_failed, given.parents_skipped,
       given.worker, given.since, given.started_at, given.finished_at, given.failure::json, runs.tenant
  from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[],
              $6::int[], $7::int[], $8::int[], $9::int[],
              $10::uuid[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[])
    as given (run, idx, state, attempt, revision,
              parents_done, parents_succeeded, parents_failed, parents_skipped,
              worker, since, started_at, finished_at, failure)
  join runs on runs.id = given.run
