-- Records an event that a trigger receives, unless it has received it before, and deletes a few old ones.
with forgotten as (
    delete from trigger_events
     where (tenant, workflow, name, id) in (
         select tenant, workflow, name, id from trigger_events
          where tenant = $1 and workflow = $2 and name = $3 and at < $8
          order by at limit 10 for update skip locked
     )
)
insert into trigger_events (tenant, workflow, name, id, at, what, run)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant, workflow, name, id) do nothing
