-- Creates runs, but for those whose id or whose schedule's logical date is taken: of these no row is written, and none of
-- their other rows may be. Answers which are new.
insert into runs (id, tenant, workflow, version, state, revision, counts, failures, events,
                  created_at, started_at, finished_at, error, checkup_at, logical_date,
                  parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule)
select id, tenant, workflow, version, state, revision, counts::int[], failures, events,
       created_at, started_at, finished_at, error, checkup_at, logical_date,
       parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule
  from unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::int[], $7::text[], $8::int[],
              $9::bigint[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::text[],
              $14::timestamptz[], $15::timestamptz[], $16::uuid[], $17::int[], $18::int[], $19::boolean[],
              $20::int[], $21::text[], $22::boolean[], $23::int[], $24::text[])
    as given (id, tenant, workflow, version, state, revision, counts, failures, events,
              created_at, started_at, finished_at, error, checkup_at, logical_date,
              parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule)
on conflict do nothing
returning id
