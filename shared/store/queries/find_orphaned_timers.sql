-- Runs with timers that are overdue and that nothing waits for: their task has ended, or their run has.
select overdue.run, count(*)::int as count, min(overdue.wake_at) as since
  from (select run, idx, task, wake_at from timers where wake_at <= $1 order by wake_at limit $2) as overdue
  join runs on runs.id = overdue.run
  left join tasks on tasks.run = overdue.run and tasks.idx = overdue.task
 where tasks.finished_at is not null or (overdue.task is null and runs.finished_at is not null)
 group by overdue.run
 order by overdue.run
