-- The named tasks and the fan-outs that any of them is a child of, each once. Their runs are locked, so the rows need
-- no locks of their own.
with named as (
    select run, idx from unnest($1::uuid[], $2::int[]) as given (run, idx)
),
wanted as (
    select run, idx from named
     union
    select run, child_of from named join tasks using (run, idx) where child_of is not null
)
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from wanted
  join tasks using (run, idx)
 order by run, idx
