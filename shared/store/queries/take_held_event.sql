-- Takes the event that a trigger holds, if it is due and the trigger is not paused.
with due as (
    select tenant, workflow, name, held from triggers
     where tenant = $1 and workflow = $2 and name = $3 and due_at <= $4 and held is not null and paused_at is null
       for update
)
update triggers set held = null, due_at = null
  from due
 where triggers.tenant = due.tenant and triggers.workflow = due.workflow and triggers.name = due.name
returning due.held
