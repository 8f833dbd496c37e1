-- Creates tasks: those of a new run, or the children of a fan-out.
insert into tasks (run, idx, state, attempt, revision,
                   parents_done, parents_succeeded, parents_failed, parents_skipped,
                   worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided, tenant)
select given.run, given.idx, given.state, given.attempt, given.revision,
       given.parents_done, given.parents_succeeded, given.parents_failed, given.parents_skipped,
       given.worker, given.since, given.started_at, given.finished_at, given.failure::json,
       given.child_of, given.item, given.fan::int[], given.begun_at, given.handed_back, given.voided, given.tenant
  from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[],
              $6::int[], $7::int[], $8::int[], $9::int[],
              $10::uuid[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[],
              $15::int[], $16::int[], $17::text[], $18::timestamptz[], $19::int[], $20::int[], $21::int[])
    as given (run, idx, state, attempt, revision,
              parents_done, parents_succeeded, parents_failed, parents_skipped,
              worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided, tenant)
