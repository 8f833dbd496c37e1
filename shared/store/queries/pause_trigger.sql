-- Pauses or resumes a trigger. The sensor of a resumed one polls at once.
update triggers
   set paused_at = $4, paused_reason = $5,
       failures = case when $4::timestamptz is null then 0 else failures end,
       due_at = case when $4::timestamptz is null and kind = 'sensor' then $6 else due_at end
 where tenant = $1 and workflow = $2 and name = $3
