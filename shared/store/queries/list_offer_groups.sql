-- What is offered in a queue of a tenant: each combination of what decides who may take it, and in whose turn. However many
-- offers there are, it reads one row of each combination.
with recursive found as (
    (select workflow, backfill, kind, requires
       from offers
      where tenant = $1 and queue = $2
      order by workflow, backfill, kind, requires
      limit 1)
    union all
    select next.*
      from found
     cross join lateral (
         select workflow, backfill, kind, requires
           from offers
          where tenant = $1 and queue = $2
            and (workflow, backfill, kind, requires) > (found.workflow, found.backfill, found.kind, found.requires)
          order by workflow, backfill, kind, requires
          limit 1) as next
)
select found.*, backfills.weight
  from found
  left join backfills on backfills.id = found.backfill
