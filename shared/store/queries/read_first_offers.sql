-- The first offers of each given group that are not reserved. `place` is the position of the group, from 1.
select first.*, given.place
  from unnest($3::text[], $4::uuid[], $5::text[], $6::text[]) with ordinality
       as given (workflow, backfill, kind, requires, place)
 cross join lateral (
     select run, idx, attempt, rank
       from offers
      where tenant = $1 and queue = $2
        and workflow = given.workflow and backfill = given.backfill
        and kind = given.kind and requires = given.requires
        and (reserved_until is null or reserved_until <= $7)
      order by rank, run, idx
      limit $8) as first
