-- The triggers that are due and not paused, the longest overdue first.
select triggers.tenant, triggers.workflow, triggers.name, triggers.definition, triggers.due_at, triggers.held,
       triggers.watermark, triggers.failures, triggers.revision, triggers.paused_at, triggers.paused_reason,
       last.id as event_id, last.at as event_at, last.what as event_what, last.run as event_run
  from triggers
  left join lateral (
       select id, at, what, run from trigger_events
        where trigger_events.tenant = triggers.tenant and trigger_events.workflow = triggers.workflow
          and trigger_events.name = triggers.name
        order by at desc, id limit 1
  ) last on true
 where triggers.due_at <= $1 and triggers.paused_at is null
 order by triggers.due_at, triggers.tenant, triggers.workflow, triggers.name
 limit $2
