-- Limits that a task needs for the first time. One that is there already is neither changed nor locked: locks are taken
-- in the order of ids, and this is not it.
insert into limits (kind, tenant, name, slots)
select kind, tenant, name, slots
  from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as given (kind, tenant, name, slots)
 order by kind, tenant, name
    on conflict do nothing
