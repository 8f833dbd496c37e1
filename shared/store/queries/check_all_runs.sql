-- Has every unfinished run looked at now. They are locked in id order, as units lock them, so that this
-- cannot wait for a unit that waits for this.
with open as (
    select id from runs where finished_at is null order by id for update
)
update runs
   set recheck_at = least(runs.recheck_at, $1)
  from open
 where runs.id = open.id
