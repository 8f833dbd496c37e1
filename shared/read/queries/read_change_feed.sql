-- What was written to the histories of runs since a snapshot, with the present one: a row belongs to exactly one of two
-- consecutive reads, however long its transaction took. One row more than wanted shows whether there are more. Rows that
-- were restored from a dump of another server have transaction numbers of the future.
with changes as materialized (
    select run, seq, events
      from events
     where tx is not null
       and tx >= pg_snapshot_xmin($1::text::pg_snapshot)
       and tx < pg_snapshot_xmax(pg_current_snapshot())
       and not pg_visible_in_snapshot(tx, $1::text::pg_snapshot)
     order by tx
     limit $2
)
select pg_current_snapshot()::text as cursor, changes.run, changes.seq, changes.events,
       runs.workflow, runs.version, runs.state
  from (select 1) as always
  left join (changes join runs on runs.id = changes.run) on true
 order by changes.run, changes.seq
