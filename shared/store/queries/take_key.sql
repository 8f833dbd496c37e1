-- Takes a key that nobody has, whose taker died without an answer to the same request, or whose answer is too old to
-- count. A row is returned to whoever has it now; of several who ask at once, to one.
insert into receipts (tenant, actor, key, fingerprint, taken_at)
values ($1, $2, $3, $4, $5)
on conflict (tenant, actor, key) do update
   set fingerprint = excluded.fingerprint, taken_at = excluded.taken_at, status = null, headers = null, body = null
 where receipts.taken_at < $7
    or (receipts.status is null and receipts.taken_at < $6 and receipts.fingerprint = excluded.fingerprint)
returning 1 as taken
