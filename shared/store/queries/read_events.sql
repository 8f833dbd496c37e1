-- Rows of events from the one that holds the number asked for; a row holds at least one event, so as many
-- rows as events are wanted are enough. They lie where the run was created.
with place as materialized (select created_at from runs where id = $1)
select seq, events
  from events
 where run = $1 and run_at = (select created_at from place)
   and seq >= coalesce((select max(seq) from events
                         where run = $1 and seq <= $2 and run_at = (select created_at from place)), 0)
 order by seq
 limit $3
