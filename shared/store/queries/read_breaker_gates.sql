-- The breakers of tasks that are not closed, with how many attempts have their slots.
select breakers.tenant, breakers.name, probing, coalesce(used, 0) as used
  from breakers
  join unnest($1::int[], $2::text[]) as given (tenant, name)
    on breakers.tenant = given.tenant and breakers.name = given.name
  left join limits on limits.kind = 'breaker' and limits.tenant = given.tenant and limits.name = given.name
 where breakers.kind = 'task' and opened_at is not null
 order by breakers.id
