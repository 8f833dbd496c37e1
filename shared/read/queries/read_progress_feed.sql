-- What attempts have reported since a snapshot, up to the one that the change feed was read at: together they are one read.
select progress.run, progress.idx, progress.attempt, progress.at, progress.fraction, progress.message, progress.phase,
       progress.metrics, tasks.child_of, tasks.item, runs.workflow, runs.version
  from progress
  join runs on runs.id = progress.run
  join tasks on tasks.run = progress.run and tasks.idx = progress.idx
 where progress.tx >= pg_snapshot_xmin($1::text::pg_snapshot)
   and not pg_visible_in_snapshot(progress.tx, $1::text::pg_snapshot)
   and pg_visible_in_snapshot(progress.tx, $2::text::pg_snapshot)
 order by progress.tx
 limit $3
