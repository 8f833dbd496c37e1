-- The tasks of the definitions of some runs, of each the first $2 or all, without failures, outputs, timers and children.
-- Children come after all tasks of the definition, so the cost is that of the definitions, however many children there are.
select task.run, task.idx, task.state, task.attempt, task.revision,
       task.parents_done, task.parents_succeeded, task.parents_failed, task.parents_skipped,
       task.worker, task.since, task.started_at, task.finished_at, null::json as failure,
       task.child_of, task.item, task.fan, task.begun_at, task.handed_back, task.voided
  from unnest($1::uuid[]) as wanted (run)
  -- Computed first, since the tenant's role checks its policy before any condition with a subquery: in the join, the
  -- subquery would run once per task of the run.
  cross join lateral (select coalesce((select idx from tasks as children
                                        where children.run = wanted.run and children.child_of is not null
                                        order by idx limit 1), 2147483647) as first_child offset 0) as definition
  join tasks as task on task.run = wanted.run and task.idx < definition.first_child
                  and ($2::int is null or task.idx < $2)
 order by task.run, task.idx
