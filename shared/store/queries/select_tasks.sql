-- The named tasks, and the fan-outs that any of them is a child of: those may come twice. Their runs are locked, so the
-- rows need no locks of their own.
with named as materialized (
    select tasks.*
      from unnest($1::uuid[], $2::int[]) as given (run, idx)
      join tasks using (run, idx)
)
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from named
 union all
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from (select distinct run, child_of as idx from named where child_of is not null) as fans
  join tasks using (run, idx)
