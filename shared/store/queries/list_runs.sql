-- The newest runs of a tenant. A filter that is null lets everything pass; each kind of filter has an index in this order,
-- so a list costs its own length.
select runs.id, runs.tenant, runs.workflow, runs.version, runs.state, runs.revision, runs.counts,
       runs.failures, runs.events, runs.created_at, runs.started_at, runs.finished_at, runs.error,
       runs.parent_run, runs.parent_idx, runs.parent_attempt, runs.parent_waits, runs.depth, runs.concurrency_group, runs.waiting, runs.priority,
       runs.logical_date, run_facts.inputs, run_facts.labels, run_facts.trigger_kind,
       run_facts.trigger_by, run_facts.schedule as planned_schedule,
       run_facts.interval_start, run_facts.interval_end, versions.number, parents.version as parent_version,
       starters.child_of as starter_child_of, starters.item as starter_item
  from runs
  join run_facts on run_facts.run = runs.id
  join versions on versions.id = runs.version
  left join runs as parents on parents.id = runs.parent_run
  left join tasks as starters on starters.run = runs.parent_run and starters.idx = runs.parent_idx
 where runs.tenant = $1
   and ($2::text is null or runs.workflow = $2)
   and ($3::text is null or runs.state = $3)
   and ($4::uuid is null or runs.parent_run = $4)
 order by runs.created_at desc, runs.id desc
 limit $5
