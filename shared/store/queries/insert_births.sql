-- Creates runs with all that is written of every one of them: facts, tasks and first events. Of those whose id or whose
-- schedule's logical date is taken, no row is written. Answers which are new. (`is true` has what was
-- born looked up, not joined row by row.)
with born as (
    insert into runs (id, tenant, workflow, version, state, revision, counts, failures, events,
                      created_at, started_at, finished_at, error, recheck_at, logical_date,
                      parent_run, parent_idx, parent_attempt, parent_waits, depth, concurrency_group, waiting, priority, schedule)
    select id, tenant, workflow, version, state, revision, counts::int[], failures, events,
           created_at, started_at, finished_at, error, recheck_at, logical_date,
           parent_run, parent_idx, parent_attempt, parent_waits, depth, concurrency_group, waiting, priority, schedule
      from unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::int[], $7::text[], $8::int[],
                  $9::bigint[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::text[],
                  $14::timestamptz[], $15::timestamptz[], $16::uuid[], $17::int[], $18::int[], $19::boolean[],
                  $20::int[], $21::text[], $22::boolean[], $23::int[], $24::text[])
        as given (id, tenant, workflow, version, state, revision, counts, failures, events,
                  created_at, started_at, finished_at, error, recheck_at, logical_date,
                  parent_run, parent_idx, parent_attempt, parent_waits, depth, concurrency_group, waiting, priority, schedule)
    on conflict do nothing
    returning id
), told as (
    insert into run_facts (run, inputs, labels, trigger_kind, trigger_by, schedule, interval_start, interval_end)
    select given.run, given.inputs::json, given.labels::json, given.trigger_kind, given.trigger_by, given.schedule,
           given.interval_start, given.interval_end
      from unnest($25::uuid[], $26::text[], $27::text[], $28::text[], $29::text[], $30::text[], $31::timestamptz[],
                  $32::timestamptz[])
        as given (run, inputs, labels, trigger_kind, trigger_by, schedule, interval_start, interval_end)
     where (given.run in (select id from born)) is true
), waiting as (
    insert into tasks (run, idx, state, attempt, revision,
                       parents_done, parents_succeeded, parents_failed, parents_skipped,
                       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided, tenant)
    select given.run, given.idx, given.state, given.attempt, given.revision,
           given.parents_done, given.parents_succeeded, given.parents_failed, given.parents_skipped,
           given.worker, given.since, given.started_at, given.finished_at, given.failure::json,
           given.child_of, given.item, given.fan::int[], given.begun_at, given.handed_back, given.voided, given.tenant
      from unnest($33::uuid[], $34::int[], $35::text[], $36::int[], $37::int[],
                  $38::int[], $39::int[], $40::int[], $41::int[],
                  $42::uuid[], $43::timestamptz[], $44::timestamptz[], $45::timestamptz[], $46::text[],
                  $47::int[], $48::int[], $49::text[], $50::timestamptz[], $51::int[], $52::int[], $53::int[])
        as given (run, idx, state, attempt, revision,
                  parents_done, parents_succeeded, parents_failed, parents_skipped,
                  worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided, tenant)
     where (given.run in (select id from born)) is true
), noted as (
    insert into events (run, run_at, seq, count, events)
    select given.run, given.run_at, given.seq, given.count, given.events::json
      from unnest($54::uuid[], $55::timestamptz[], $56::bigint[], $57::int[], $58::text[])
        as given (run, run_at, seq, count, events)
     where (given.run in (select id from born)) is true
)
select id from born
