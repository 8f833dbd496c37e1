-- Locks the runs whose timers are due and that nobody else has locked, so that sweeps at the same time take different ones.
-- Nothing is waited for, so it does not matter in which order the runs are locked.
select runs.id
  from timers
  join runs on runs.id = timers.run
 where timers.wake_at <= $1
 order by timers.wake_at
 limit $2
   for update of runs skip locked
