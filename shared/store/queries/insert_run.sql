-- Creates a run, unless its id or its schedule's logical date is taken: then no row is written, and none
-- of the run's other rows may be.
insert into runs (id, tenant, workflow, version, state, revision, counts, failures, events,
                  created_at, started_at, finished_at, error, checkup_at, logical_date,
                  parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
        $16, $17, $18, $19, $20, $21, $22, $23, $24)
on conflict do nothing
