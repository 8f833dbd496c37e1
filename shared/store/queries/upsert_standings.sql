-- How far tenants have come in lines.
insert into standings (lim, tenant, position, received)
select lim, tenant, position, received
  from unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) as given (lim, tenant, position, received)
    on conflict (lim, tenant) do update set position = excluded.position, received = excluded.received
