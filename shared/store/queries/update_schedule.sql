-- Writes a schedule over the revision it was read at.
update schedules
   set definition = $4::text::json, decided_until = $5, owed = $6, owed_until = $7, due_at = $8,
       paused_at = $9, paused_by = $10, pause_reason = $11, problem = $12, last_date = $13, drift = $14,
       revision = revision + 1
 where tenant = $1 and workflow = $2 and name = $3 and revision = $15
