-- Chunks of an attempt's log from the one that holds the line asked for; a chunk holds at least one line,
-- so as many chunks as lines are wanted are enough.
select first, lines
  from logs
 where run = $1 and idx = $2 and attempt = $3
   and first >= coalesce((select max(first) from logs
                           where run = $1 and idx = $2 and attempt = $3 and first <= $4), 0)
 order by first
 limit $5
