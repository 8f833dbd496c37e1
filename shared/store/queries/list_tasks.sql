-- A page of a run's tasks as readers see them, with output and timer.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.revision,
       tasks.parents_done, tasks.parents_succeeded, tasks.parents_failed, tasks.parents_skipped,
       tasks.worker, tasks.since, tasks.started_at, tasks.finished_at, tasks.failure,
       outputs.output,
       timers.attempt as timer_attempt, timers.kind as timer_kind, timers.wake_at
  from tasks
  left join outputs on outputs.run = tasks.run and outputs.idx = tasks.idx
  left join timers on timers.run = tasks.run and timers.idx = tasks.idx
 where tasks.run = $1 and tasks.idx > $2
 order by tasks.idx
 limit $3
