-- The parties that stand in a limit's line or have been given places from it.
with parties as (
    select lim, tenant, '00000000-0000-0000-0000-000000000000'::uuid as backfill, 1 as backfill_weight, received,
           pace
      from fairness_groups
    union all
    select behind.lim, backfills.tenant, behind.backfill, backfills.weight, behind.received, behind.pace
      from backfill_fairness_groups as behind join backfills on backfills.id = behind.backfill
)
select parties.tenant, parties.backfill, tenants.weight, parties.backfill_weight, parties.received, parties.pace,
       in_line.waiting, in_line.oldest
  from limits
  join parties on parties.lim = limits.id
  join tenants on tenants.id = parties.tenant
 cross join lateral (
     select count(*) as waiting, min(since) as oldest from slot_waiters
      where slot_waiters.lim = limits.id and slot_waiters.tenant = parties.tenant and slot_waiters.backfill = parties.backfill
        and granted_at is null
 ) as in_line
 where limits.kind = $1 and limits.tenant = $2 and limits.name = $3
 order by parties.tenant, parties.backfill
