-- Every task of the runs. Their runs are locked, so the rows need no locks of their own.
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from tasks
 where run = any($1)
 order by run, idx
