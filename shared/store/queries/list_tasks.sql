-- A page of a run's tasks as readers see them, with output, the timer that is due first and the shared task that it waits
-- for: the tasks of its definition, or the children of the task named. Children come after all tasks of the definition and next to each other, so a page
-- costs its own length, however many other children there are. Of an output of more than $5 bytes, there are only its size
-- and its beginning.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.revision,
       tasks.parents_done, tasks.parents_succeeded, tasks.parents_failed, tasks.parents_skipped,
       tasks.worker, tasks.since, tasks.started_at, tasks.finished_at, tasks.failure,
       tasks.child_of, tasks.item, tasks.fan, tasks.begun_at, tasks.handed_back, tasks.voided,
       case when octet_length(outputs.output::text) <= $5 then outputs.output end as output,
       case when octet_length(outputs.output::text) > $5 then octet_length(outputs.output::text) end as output_bytes,
       case when octet_length(outputs.output::text) > $5 then left(outputs.output::text, $5) end as output_head,
       shared_task_waiters.owner_run, shared_task_waiters.owner_idx,
       timer.attempt as timer_attempt, timer.kind as timer_kind, timer.wake_at
  from tasks
  left join outputs on outputs.run = tasks.run and outputs.idx = tasks.idx
  left join shared_task_waiters on shared_task_waiters.run = tasks.run and shared_task_waiters.idx = tasks.idx
  left join lateral (select attempt, kind, wake_at from timers
                      where timers.run = tasks.run and timers.idx = tasks.idx
                      order by wake_at, kind limit 1) as timer on true
 where tasks.run = $1
   and tasks.idx > $3
   and tasks.idx >= coalesce((select fan[1] from tasks where run = $1 and idx = $2), 0)
   and tasks.idx < case when $2::int is null
                        then coalesce((select idx from tasks where run = $1 and child_of is not null
                                        order by idx limit 1), 2147483647)
                        else (select fan[1] + fan[2] from tasks where run = $1 and idx = $2) end
 order by tasks.idx
 limit $4
