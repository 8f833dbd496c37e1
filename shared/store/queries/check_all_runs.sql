-- Makes every unfinished run due for a recheck. They are locked in id order, as all transactions lock them, so that
-- none of them can deadlock with this statement.
with open as (
    select id from runs where finished_at is null order by id for update
)
update runs
   set recheck_at = least(runs.recheck_at, $1)
  from open
 where runs.id = open.id
