-- Tasks in wait queues, and those that were granted their slots.
insert into slot_waiters (run, idx, attempt, tenant, backfill, lim, step, needs, id, rank, since, granted_at)
select run, idx, attempt, tenant, backfill, lim, step, needs::int[], id, rank, since, granted_at
  from unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::uuid[], $6::int[], $7::int[], $8::text[],
              $9::bigint[], $10::bigint[], $11::timestamptz[], $12::timestamptz[])
       as given (run, idx, attempt, tenant, backfill, lim, step, needs, id, rank, since, granted_at)
    on conflict (run, idx) do update
   set attempt = excluded.attempt, lim = excluded.lim, step = excluded.step, needs = excluded.needs,
       id = excluded.id, rank = excluded.rank, since = excluded.since, granted_at = excluded.granted_at
