-- Breakers that fail for the first time. One that exists is locked: it could otherwise be deleted before it is read.
insert into breakers (tenant, kind, name)
select tenant, kind, name
  from unnest($1::int[], $2::text[], $3::text[]) as given (tenant, kind, name)
 order by tenant, kind, name
    on conflict (tenant, kind, name) do update set kind = excluded.kind
