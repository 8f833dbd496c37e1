-- The attempts that workers hold of one tenant, by key: at most $3 of each worker, and $4 together, of all workers alike.
select held.*, runs.version as run_version
  from unnest($1::uuid[]) as page (worker)
 cross join lateral (
     select run, idx, attempt, worker, child_of, item, started_at, row_number() over (order by run, idx) as place
       from tasks
      where tasks.worker = page.worker and tasks.tenant = $2
      order by run, idx
      limit $3
 ) as held
  join runs on runs.id = held.run
 order by held.place, held.worker
 limit $4
