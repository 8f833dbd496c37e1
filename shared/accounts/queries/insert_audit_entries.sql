-- Audit entries, in the order in which they were sent.
insert into audit_entries (tenant, at, actor, origin, forwarded, agent, action, target, key, status, before, after)
select tenant, at, actor, origin, forwarded, agent, action, target, key, status, before::json, after::json
  from unnest($1::int[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
              $9::text[], $10::int[], $11::text[], $12::text[])
       with ordinality
       as given (tenant, at, actor, origin, forwarded, agent, action, target, key, status, before, after, place)
 order by place
