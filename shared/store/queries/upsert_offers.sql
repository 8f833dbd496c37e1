-- Offers dispatched tasks, and notifies the processes in which workers wait, once the transaction is committed.
with made as (
    insert into offers (run, idx, attempt, tenant, queue, workflow, kind, requires, backfill, rank)
    select * from unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[],
                         $9::uuid[], $10::bigint[])
    on conflict (run, idx) do update
       set attempt = excluded.attempt, queue = excluded.queue, kind = excluded.kind, requires = excluded.requires,
           backfill = excluded.backfill, rank = excluded.rank, reserved_until = null
    returning tenant, queue, workflow, kind, requires
)
select pg_notify('offers_made', json_build_array(tenant, queue, workflow, kind, requires)::text)
  from (select distinct * from made) as new
