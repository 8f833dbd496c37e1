-- Rows of events from the one that holds the number asked for; a row holds at least one event, so as many
-- rows as events are wanted are enough.
select seq, events
  from events
 where run = $1
   and seq >= coalesce((select max(seq) from events where run = $1 and seq <= $2), 0)
 order by seq
 limit $3
