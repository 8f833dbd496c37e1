-- The turns of fairness groups in wait queues, with their weights. A group without a backfill (nil) is its tenant's live
-- tasks.
select given.lim, own.tenant, own.backfill, tenants.weight, coalesce(backfills.weight, 1) as backfill_weight,
       coalesce(fairness_groups.position, behind.position, 0) as position,
       coalesce(fairness_groups.received, behind.received, 0) as received,
       coalesce(fairness_groups.pace, behind.pace, '{0,0,0}') as pace
  from unnest($2::int[], $3::uuid[]) as own (tenant, backfill)
  join tenants on tenants.id = own.tenant
 cross join unnest($1::int[]) as given (lim)
  left join fairness_groups
    on fairness_groups.lim = given.lim and fairness_groups.tenant = own.tenant
   and own.backfill = '00000000-0000-0000-0000-000000000000'
  left join backfills on backfills.id = own.backfill
  left join backfill_fairness_groups as behind on behind.lim = given.lim and behind.backfill = own.backfill
