-- Reserves the first of the given offers that are free. An offer that another transaction is about to reserve, or whose
-- task it is about to claim, is left out without waiting.
with free as (
    select offers.run, offers.idx, given.place
      from unnest($1::uuid[], $2::int[], $3::int[]) with ordinality as given (run, idx, attempt, place)
      join offers on offers.run = given.run and offers.idx = given.idx and offers.attempt = given.attempt
     where offers.reserved_until is null or offers.reserved_until <= $4
     order by given.place
     limit $6
       for update of offers skip locked
), reserved as (
    update offers set reserved_until = $5
      from free
     where offers.run = free.run and offers.idx = free.idx
    returning offers.run, offers.idx, offers.attempt, offers.workflow, free.place
)
select reserved.*, runs.version, tasks.child_of, tasks.item
  from reserved
  join runs on runs.id = reserved.run
  join tasks on tasks.run = reserved.run and tasks.idx = reserved.idx
 order by reserved.place
