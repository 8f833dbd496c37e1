-- Counts slots that were taken and given back. Limits are locked in the order of their ids.
with given as (
    select kind, tenant, name, slots
      from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as given (kind, tenant, name, slots)
), locked as (
    select limits.id, given.slots
      from limits join given using (kind, tenant, name)
     order by limits.id
       for update of limits
)
update limits
   set used = greatest(limits.used + locked.slots, 0)
  from locked
 where limits.id = locked.id
returning limits.id, limits.kind, limits.tenant, limits.name, limits.slots, limits.used, limits.waiting,
          limits.frontier
