-- The tenants that stand in a limit's line or have been given places from it.
select standings.tenant, tenants.weight, standings.received, in_line.waiting, in_line.oldest
  from limits
  join standings on standings.lim = limits.id
  join tenants on tenants.id = standings.tenant
 cross join lateral (
     select count(*) as waiting, min(since) as oldest from line
      where line.lim = limits.id and line.tenant = standings.tenant and granted_at is null
 ) as in_line
 where limits.kind = $1 and limits.tenant = $2 and limits.name = $3
 order by standings.tenant
