-- Writes runs and tasks, each only over the revision it was read at, and what happened to them. One that was changed in
-- between matches no row: whoever asked must count the rows, and give up everything if one is missing. When the sweep looks
-- at a run stays as it is where `keep` says so, unless an earlier time is given: then no index is touched.
with written_runs as (
    update runs
       set state       = given.state,
           revision    = runs.revision + 1,
           counts      = given.counts::int[],
           failures    = given.failures,
           events      = given.events,
           started_at  = given.started_at,
           finished_at = given.finished_at,
           error       = given.error,
           waiting        = given.waiting,
           recheck_at  = case when given.keep then least(runs.recheck_at, given.recheck_at) else given.recheck_at end
      from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::int[], $6::bigint[],
                  $7::timestamptz[], $8::timestamptz[], $9::text[], $10::boolean[], $11::timestamptz[],
                  $12::boolean[])
        as given (id, revision, state, counts, failures, events,
                  started_at, finished_at, error, keep, recheck_at, waiting)
     where runs.id = given.id and runs.revision = given.revision
    returning 1
), written_tasks as (
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
      from unnest($13::uuid[], $14::int[], $15::text[], $16::int[], $17::int[],
                  $18::int[], $19::int[], $20::int[], $21::int[],
                  $22::uuid[], $23::timestamptz[], $24::timestamptz[], $25::timestamptz[], $26::text[],
                  $27::int[], $28::int[], $29::text[], $30::timestamptz[], $31::int[], $32::int[])
        as given (run, idx, state, attempt, revision,
                  parents_done, parents_succeeded, parents_failed, parents_skipped,
                  worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided)
     where tasks.run = given.run and tasks.idx = given.idx and tasks.revision = given.revision
    returning 1
), noted as (
    insert into events (run, run_at, seq, count, events)
    select run, run_at, seq, count, events::json
      from unnest($33::uuid[], $34::timestamptz[], $35::bigint[], $36::int[], $37::text[])
        as given (run, run_at, seq, count, events)
)
select (select count(*) from written_runs) as runs, (select count(*) from written_tasks) as tasks
