-- A trigger of the version that became active. One that waits for the same as before keeps its watermark and the event
-- that it holds; any other starts from the beginning.
insert into triggers (tenant, workflow, name, kind, keys, definition, due_at)
values ($1, $2, $3, $4, $5, $6::text::json, $7)
on conflict (tenant, workflow, name) do update
   set kind = excluded.kind, keys = excluded.keys, definition = excluded.definition,
       due_at = case when triggers.definition ->> 'on' = excluded.definition ->> 'on' then triggers.due_at else excluded.due_at end,
       held = case when triggers.definition ->> 'on' = excluded.definition ->> 'on' then triggers.held end,
       watermark = case when triggers.definition ->> 'on' = excluded.definition ->> 'on' then triggers.watermark end,
       paused_at = case when triggers.definition ->> 'on' = excluded.definition ->> 'on' then triggers.paused_at end,
       paused_reason = case when triggers.definition ->> 'on' = excluded.definition ->> 'on' then triggers.paused_reason end,
       failures = case when triggers.definition ->> 'on' = excluded.definition ->> 'on' then triggers.failures else 0 end,
       revision = triggers.revision + 1
