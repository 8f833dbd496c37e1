-- Events from the number asked for on, but for those of children of fan-outs, save the child named: however many children
-- there are, only what is wanted is sent. A NUL, which no field could be taken out beside, reads as a space there.
with home as materialized (select created_at from runs where id = $1)
select events.seq + event.place - 1 as number, event.content
  from events
 cross join lateral json_array_elements(events.events) with ordinality as event (content, place)
 cross join lateral (select replace(event.content::text, '\u0000', '\u0020')::json as content) as legible
 where events.run = $1 and events.run_at = (select created_at from home)
   and events.seq >= coalesce((select max(seq) from events
                                where run = $1 and seq <= $2 and run_at = (select created_at from home)), 0)
   and events.seq + event.place - 1 >= $2
   and (legible.content -> 'child' is null or (legible.content ->> 'task')::int = $3)
 order by events.seq, event.place
 limit $4
