-- How far parties have come in lines, and how often each comes. One without a backfill (nil) is its tenant's live tasks.
select given.lim, party.tenant, party.backfill, tenants.weight, coalesce(backfills.weight, 1) as backfill_weight,
       coalesce(fairness_groups.position, behind.position, 0) as position,
       coalesce(fairness_groups.received, behind.received, 0) as received,
       coalesce(fairness_groups.pace, behind.pace, '{0,0,0}') as pace
  from unnest($2::int[], $3::uuid[]) as party (tenant, backfill)
  join tenants on tenants.id = party.tenant
 cross join unnest($1::int[]) as given (lim)
  left join fairness_groups
    on fairness_groups.lim = given.lim and fairness_groups.tenant = party.tenant
   and party.backfill = '00000000-0000-0000-0000-000000000000'
  left join backfills on backfills.id = party.backfill
  left join backfill_fairness_groups as behind on behind.lim = given.lim and behind.backfill = party.backfill
