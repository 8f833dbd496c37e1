-- Limits that a task needs for the first time, or that its workflow says something new about. What a person has set is
-- not overwritten.
insert into limits (kind, tenant, name, places)
select kind, tenant, name, places
  from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as given (kind, tenant, name, places)
 order by kind, tenant, name
    on conflict (kind, tenant, name) do update set places = excluded.places
 where limits.kind = 'workflow'
