-- The turns of tenants in wait queues.
insert into fairness_groups (lim, tenant, position, received, pace)
select lim, tenant, position, received, pace::int[]
  from unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[], $5::text[])
       as given (lim, tenant, position, received, pace)
    on conflict (lim, tenant) do update set position = excluded.position, received = excluded.received,
                                                 pace = excluded.pace
