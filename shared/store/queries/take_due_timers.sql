-- Timers that are due, of runs that nobody else has locked; these are locked, so that sweeps at the same time take
-- different ones. Nothing is waited for, so it does not matter in which order the runs are locked.
select timers.run, timers.idx, timers.attempt, timers.kind, timers.wake_at
  from timers
  join runs on runs.id = timers.run
 where timers.wake_at <= $1
 order by timers.wake_at
 limit $2
   for update of runs skip locked
