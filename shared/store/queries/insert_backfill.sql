-- Creates a backfill, unless it exists.
insert into backfills (id, tenant, workflow, schedule, version, from_at, to_at, max_parallel, weight, rerun, state,
                       created_at, created_by, finished_at, due_at, revision)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 0)
on conflict do nothing
