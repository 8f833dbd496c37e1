-- Of the fairness groups of all tenants that are in a limit's wait queue or were given slots from it, $5: first those that
-- wait, then those of the tenant $4, then those that were given slots last. Beside them, what all groups have together.
with groups as (
    select lim, tenant, '00000000-0000-0000-0000-000000000000'::uuid as backfill, 10 as backfill_weight, received,
           pace
      from fairness_groups
    union all
    select behind.lim, backfills.tenant, behind.backfill, backfills.weight, behind.received, behind.pace
      from backfill_fairness_groups as behind join backfills on backfills.id = behind.backfill
), shown as (
    select groups.tenant, tenants.name as tenant_name, groups.backfill, tenants.weight, groups.backfill_weight,
           groups.received, groups.pace, slot_wait.waiting, slot_wait.oldest,
           (sum(groups.received) over ())::bigint as all_received,
           (sum(tenants.weight * groups.backfill_weight) filter (where slot_wait.waiting > 0) over ())::bigint as all_turns
      from limits
      join groups on groups.lim = limits.id
      join tenants on tenants.id = groups.tenant
     cross join lateral (
         select count(*) as waiting, min(since) as oldest from slot_waiters
          where slot_waiters.lim = limits.id and slot_waiters.tenant = groups.tenant
            and slot_waiters.backfill = groups.backfill and granted_at is null
     ) as slot_wait
     where limits.kind = $1 and limits.tenant = $2 and limits.name = $3
     order by slot_wait.waiting = 0, groups.tenant <> $4, groups.pace[1] desc, groups.tenant, groups.backfill
     limit $5
)
select * from shown order by tenant, backfill
