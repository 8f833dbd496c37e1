-- Breakers about which something happened, locked in the order of their ids. Of those that saw no failure, only open ones matter.
select id, breakers.tenant, breakers.kind, breakers.name, failed_at, message, opened_at, open_until, pause_seconds, probing
  from breakers
  join unnest($1::int[], $2::text[], $3::text[], $4::bool[]) as given (tenant, kind, name, failed)
    on breakers.tenant = given.tenant and breakers.kind = given.kind and breakers.name = given.name
 where given.failed or opened_at is not null
 order by id
   for update of breakers
