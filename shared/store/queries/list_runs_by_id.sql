-- Runs of a tenant in the order of the ids given, for a list: inputs of more than $3 bytes are left out, and their size and
-- beginning are there instead.
select runs.id, runs.tenant, runs.workflow, runs.version, runs.state, runs.revision, runs.counts,
       runs.failures, runs.events, runs.created_at, runs.started_at, runs.finished_at, runs.error,
       runs.parent_run, runs.parent_idx, runs.parent_attempt, runs.parent_waits, runs.depth, runs.concurrency_group, runs.waiting, runs.priority,
       runs.logical_date, case when octet_length(written.inputs) <= $3 then run_facts.inputs else '{}'::json end as inputs,
       case when octet_length(written.inputs) > $3 then octet_length(written.inputs) end as inputs_bytes,
       case when octet_length(written.inputs) > $3 then left(written.inputs, $3) end as inputs_head, run_facts.labels, run_facts.trigger_kind,
       run_facts.trigger_by, run_facts.schedule as planned_schedule,
       run_facts.interval_start, run_facts.interval_end, versions.number, parents.version as parent_version,
       starters.child_of as starter_child_of, starters.item as starter_item
  from runs
  join run_facts on run_facts.run = runs.id
 -- Once: long inputs take a while to unpack.
 cross join lateral (select run_facts.inputs::text as inputs offset 0) as written
  join versions on versions.id = runs.version
  left join runs as parents on parents.id = runs.parent_run
  left join tasks as starters on starters.run = runs.parent_run and starters.idx = runs.parent_idx
 where runs.id = any ($2::uuid[])
   and runs.tenant is not distinct from $1 -- which no index serves: rows are found by their ids
 order by array_position($2::uuid[], runs.id)
