-- A page of a tenant's audit log, newest first. A filter that is null lets everything pass.
select id, tenant, at, actor, origin, forwarded, agent, action, target, key, status, before, after
  from audit_entries
 where tenant = $1
   and ($2::text is null or actor = $2)
   and ($3::text is null or action = $3)
   and ($4::text is null or strpos(target, $4) > 0)
   and ($5::timestamptz is null or at >= $5)
   and ($6::timestamptz is null or at < $6)
   and ($7::bigint is null or id < $7)
 order by id desc
 limit $8
