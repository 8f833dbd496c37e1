-- Rows of events from the one that holds the requested number on. A row holds at least one event, so as many rows as
-- requested events are enough. They are in the partition of the run's creation.
with place as materialized (select created_at from runs where id = $1)
select seq, events
  from events
 where run = $1 and run_at = (select created_at from place)
   and seq >= coalesce((select max(seq) from events
                         where run = $1 and seq <= $2 and run_at = (select created_at from place)), 0)
 order by seq
 limit $3
