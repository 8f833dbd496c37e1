-- What was written to the histories of all runs since a snapshot, with the present one: a row belongs to exactly one of
-- two readings that follow each other, however long its transaction took. One more than are wanted, to see whether there
-- are more. Rows that another server wrote, before a dump of theirs was read in here, have transactions yet to come.
with heard as materialized (
    select run, seq, events
      from events
     where tx is not null
       and tx >= pg_snapshot_xmin($1::text::pg_snapshot)
       and tx < pg_snapshot_xmax(pg_current_snapshot())
       and not pg_visible_in_snapshot(tx, $1::text::pg_snapshot)
     order by tx
     limit $2
)
select pg_current_snapshot()::text as cursor, heard.run, heard.seq, heard.events,
       runs.tenant, runs.workflow, runs.version, runs.state
  from (select 1) as always
  left join (heard join runs on runs.id = heard.run) on true
 order by heard.run, heard.seq
