-- Locks the runs whose timers are due and that no other transaction has locked, so that concurrent sweeps take different
-- ones. It does not wait, so the order of the locks does not matter.
select runs.id
  from timers
  join runs on runs.id = timers.run
 where timers.wake_at <= $1
 order by timers.wake_at
 limit $2
   for update of runs skip locked
