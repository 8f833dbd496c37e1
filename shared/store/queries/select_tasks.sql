-- The named tasks. Their runs are locked, so the rows need no locks of their own.
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure
  from unnest($1::uuid[], $2::int[]) as named (run, idx)
  join tasks using (run, idx)
 order by run, idx
