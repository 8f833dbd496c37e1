-- The tasks of the definitions of some runs, of each the first $2 or all, without outputs, timers and children. Children come
-- after all tasks of the definition, so the cost is that of the definitions, however many children there are. Of a failure, the
-- detail is left out, and of a long message the end. The message is cut as JSON, without what would be half of an escape.
select task.run, task.idx, task.state, task.attempt, task.revision,
       task.parents_done, task.parents_succeeded, task.parents_failed, task.parents_skipped,
       task.worker, task.since, task.started_at, task.finished_at,
       case when task.failure is null then null
            -- Postgres cannot look into JSON with this escape.
            when position('\u0000' in task.failure::text) > 0 then task.failure
            else json_build_object(
                'class', task.failure -> 'class', 'exit_code', task.failure -> 'exit_code', 'signal', task.failure -> 'signal',
                'message', case when char_length((task.failure -> 'message')::text) <= 2000
                                then task.failure -> 'message'
                                else (regexp_replace(left((task.failure -> 'message')::text, 2000),
                                                     '\\+(u[0-9a-f]{0,3})?$', '') || '…"')::json
                            end)
        end as failure,
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
