-- Writes tasks, each only over the revision it was read at. A task that was changed in between matches no
-- row: whoever asked must count the rows, and give up everything if one is missing.
update tasks
   set state             = given.state,
       attempt           = given.attempt,
       revision          = tasks.revision + 1,
       parents_done      = given.parents_done,
       parents_succeeded = given.parents_succeeded,
       parents_failed    = given.parents_failed,
       parents_skipped   = given.parents_skipped,
       worker            = given.worker,
       since             = given.since,
       started_at        = given.started_at,
       finished_at       = given.finished_at,
       failure           = given.failure::json,
       child_of          = given.child_of,
       item              = given.item,
       fan               = given.fan::int[],
       begun_at          = given.begun_at,
       handed_back       = given.handed_back,
       voided            = given.voided
  from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[],
              $6::int[], $7::int[], $8::int[], $9::int[],
              $10::uuid[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[],
              $15::int[], $16::int[], $17::text[], $18::timestamptz[], $19::int[], $20::int[])
    as given (run, idx, state, attempt, revision,
              parents_done, parents_succeeded, parents_failed, parents_skipped,
              worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided)
 where tasks.run = given.run and tasks.idx = given.idx and tasks.revision = given.revision
