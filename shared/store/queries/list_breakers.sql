-- A tenant's breakers that are open, or had a failure lately, with the number of tasks that wait for each.
select breakers.id, breakers.tenant, breakers.kind, breakers.name, failed_at, message, opened_at, open_until, pause_seconds,
       probing, coalesce(limits.waiting, 0) as waiting
  from breakers
  left join limits on limits.kind = 'breaker' and breakers.kind = 'task' and limits.tenant = breakers.tenant
                  and limits.name = breakers.name
 where breakers.tenant = $1
   and (opened_at is not null or failed_at[cardinality(failed_at)] > $2)
   and ($3::bigint is null or breakers.id > $3)
 order by breakers.id
 limit $4
