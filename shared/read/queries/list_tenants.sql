-- A page of the tenants in the order of their creation, each with its own limit. A filter that is null lets everything
-- pass.
select tenants.id, tenants.name, tenants.created_at, tenants.weight, limits.slots,
       coalesce(limits.used, 0) as used, coalesce(limits.waiting, 0) as waiting
  from tenants
  left join limits on limits.kind = 'tenant' and limits.tenant = tenants.id and limits.name = ''
 where ($1::text[] is null or tenants.name = any ($1))
   and ($2::int is null or tenants.id > $2)
 order by tenants.id
 limit $3
