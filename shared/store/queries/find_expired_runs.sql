-- Runs that ended in a state at or before an instant, in the order of their ends, from where the part was last deleted
-- on. Whole runs are gone once they are deleted, so that needs no position to continue from.
select runs.id, runs.counts
  from runs
  left join retention on retention.part = $1 and retention.state = $2
 where runs.state = $2
   and runs.finished_at is not null
   and runs.finished_at <= $3
   and (retention.part is null or (runs.finished_at, runs.id) > (retention.finished_at, retention.run))
 order by runs.finished_at, runs.id
 limit $4
