-- Writes outbox messages and returns their ids, which rise in the order of the messages given.
insert into outbox (created_at, kind, body)
select created_at, kind, body::json
  from unnest($1::timestamptz[], $2::text[], $3::text[]) with ordinality
    as given (created_at, kind, body, place)
 order by place
returning id
