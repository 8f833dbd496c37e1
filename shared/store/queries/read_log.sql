-- Chunks of an attempt's log from the one that holds the requested line on. A chunk holds at least one line, so as many
-- chunks as requested lines are enough. They are in the partition of the run's creation.
with place as materialized (select created_at from runs where id = $1)
select first, lines
  from logs
 where run = $1 and idx = $2 and attempt = $3 and run_at = (select created_at from place)
   and first >= coalesce((select max(first) from logs
                           where run = $1 and idx = $2 and attempt = $3 and first <= $4
                             and run_at = (select created_at from place)), 0)
 order by first
 limit $5
