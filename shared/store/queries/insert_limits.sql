-- Limits that a task needs for the first time. One that exists is neither changed nor locked: locks are taken in the
-- order of ids, which this statement does not follow.
insert into limits (kind, tenant, name, slots)
select kind, tenant, name, slots
  from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as given (kind, tenant, name, slots)
 order by kind, tenant, name
    on conflict do nothing
