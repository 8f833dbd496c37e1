-- A page of a workflow's versions, newest first, below a number if one is given.
select id, tenant, number, hash, definition, source, created_at, created_by
  from versions
 where tenant = $1 and workflow = $2
   and ($3::integer is null or number < $3)
 order by number desc
 limit $4
