-- Claims a key that is free, whose claimant died without responding to the same request, or whose response has
-- expired. The statement returns a row to the one claimant that gets the key.
insert into idempotency_records (tenant, actor, key, fingerprint, taken_at)
values ($1, $2, $3, $4, $5)
on conflict (tenant, actor, key) do update
   set fingerprint = excluded.fingerprint, taken_at = excluded.taken_at, status = null, headers = null, body = null
 where idempotency_records.taken_at < $7
    or (idempotency_records.status is null and idempotency_records.taken_at < $6 and idempotency_records.fingerprint = excluded.fingerprint)
returning 1 as taken
