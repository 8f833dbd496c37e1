-- Timers that are due, of runs that are locked.
select run, idx, attempt, kind, wake_at
  from timers
 where run = any($3) and wake_at <= $1
 order by wake_at
 limit $2
