-- A page of a run's tasks as readers see them, with output, the timer that is due first and the shared task that it waits
-- for: the tasks of its definition, or the children of the task named. Children come after all tasks of the definition and next to each other, so a page
-- costs its own length, however many other children there are.
select tasks.run, tasks.idx, tasks.state, tasks.attempt, tasks.revision,
       tasks.parents_done, tasks.parents_succeeded, tasks.parents_failed, tasks.parents_skipped,
       tasks.worker, tasks.since, tasks.started_at, tasks.finished_at, tasks.failure,
       tasks.child_of, tasks.item, tasks.fan, tasks.begun_at, tasks.handed_back, tasks.voided,
       outputs.output, waiters.owner_run, waiters.owner_idx,
       timer.attempt as timer_attempt, timer.kind as timer_kind, timer.wake_at
  from tasks
  left join outputs on outputs.run = tasks.run and outputs.idx = tasks.idx
  left join waiters on waiters.run = tasks.run and waiters.idx = tasks.idx
  left join lateral (select attempt, kind, wake_at from timers
                      where timers.run = tasks.run and timers.idx = tasks.idx
                      order by wake_at, kind limit 1) as timer on true
 where tasks.run = $1
   and tasks.idx > $3
   and tasks.idx >= coalesce((select fan[1] from tasks where run = $1 and idx = $2), 0)
   and tasks.idx < case when $2::int is null
                        then coalesce((select idx from tasks where run = $1 and child_of is not null
                                        order by idx limit 1), 2147483647)
                        else (select fan[1] + fan[2] from tasks where run = $1 and idx = $2) end
 order by tasks.idx
 limit $4
;
-- A page of a tenant's pending timers, the next one first. A filter that is null lets everything pass.
select timers.run, timers.idx, timers.attempt, timers.kind, timers.wake_at, runs.workflow, runs.version,
       tasks.child_of, tasks.item
  from timers
  join runs on runs.id = timers.run
  left join tasks on tasks.run = timers.run and tasks.idx = timers.task
 where runs.tenant = $1
   and ($2::uuid is null or timers.run = $2)
   and ($3::text is null or runs.workflow = $3)
   and ($4::timestamptz is null
        or (timers.wake_at, timers.run, timers.idx, timers.kind collate "C") > ($4, $5::uuid, $6::int, $7::text collate "C"))
   and timers.wake_at >= coalesce($4, '-infinity')
 order by timers.wake_at, timers.run, timers.idx, timers.kind collate "C"
 limit $8
;
-- A page of a tenant's runs, newest first. A filter that is null lets everything pass; each kind of
-- filter has an index in this order, so a page costs its own length.
select runs.id, runs.tenant, runs.workflow, runs.version, runs.state, runs.revision, runs.counts,
       runs.failures, runs.events, runs.created_at, runs.started_at, runs.finished_at, runs.error,
       runs.parent_run, runs.parent_idx, runs.parent_attempt, runs.parent_waits, runs.depth, runs.lane, runs.held, runs.priority,
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
   and ($7::uuid is null or runs.parent_run = $7)
   and ($4::timestamptz is null or (runs.created_at, runs.id) < ($4, $5::uuid))
 order by runs.created_at desc, runs.id desc
 limit $6
;
-- A page of a tenant's triggers, by workflow and name. A filter that is null lets everything pass.
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
 where triggers.tenant = $1
   and ($2::text is null or triggers.workflow = $2)
   and ($3::text is null or (triggers.workflow, triggers.name) > ($3 collate "C", $4::text collate "C"))
 order by triggers.workflow, triggers.name
 limit $5
;
-- A page of a tenant's workflows in use, by name, each with its active version.
select workflows.tenant, workflows.name, workflows.archived, workflows.updated_at,
       workflows.created_at as workflow_created_at,
       versions.id, versions.number, versions.hash, versions.definition, versions.source,
       versions.created_at, versions.created_by
  from workflows
  join versions on versions.id = workflows.active_version
 where workflows.tenant = $1 and not workflows.archived
   and ($2::text is null or workflows.name > $2)
 order by workflows.name
 limit $3
;
-- A page of a workflow's versions, newest first, below a number if one is given.
select id, tenant, number, hash, definition, source, created_at, created_by
  from versions
 where tenant = $1 and workflow = $2
   and ($3::integer is null or number < $3)
 order by number desc
 limit $4
;
-- A page of the dead letters, newest first. A filter that is null lets everything pass.
select id, source, reason, body, at
  from dead_letters
 where ($1::text is null or source = $1)
   and ($2::text is null or position($2 in reason) > 0 or position($2 in body) > 0)
   and ($3::timestamptz is null or (at, id) < ($3, $4::text collate "C"))
 order by at desc, id desc
 limit $5
;
-- A page of the workers that are known, each with the attempts that it holds of one tenant: a row for each attempt, and
-- one for a worker without any.
with page as (
    select * from workers where id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') order by id limit $3
)
select page.*, tasks.run, tasks.idx, tasks.attempt, tasks.worker, tasks.child_of, tasks.item, tasks.started_at,
       runs.version as run_version
  from page
  left join tasks on tasks.worker = page.id and tasks.tenant = $1
  left join runs on runs.id = tasks.run
 order by page.id, tasks.run, tasks.idx
;
-- A trigger of the version that became active. One that waits for the same as before keeps what it has seen and what it
-- holds back; another begins anew.
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
;
-- Asks for a shared task. Whoever finds no row, or one that succeeded too long ago, becomes its owner; for anyone else
-- the row stays what it is. In any case the row is locked: a second asker waits until the first one's unit ends, and
-- finds what is true then. Whatever the asker waited for before, it no longer does.
with over as (
    delete from waiters where run = $4 and idx = $5
)
insert into shared_tasks as standing (tenant, name, key, owner_run, owner_idx)
values ($1, $2, $3, $4, $5)
    on conflict (tenant, name, key) do update
   set owner_run   = case when standing.finished_at < $6 then excluded.owner_run else standing.owner_run end,
       owner_idx   = case when standing.finished_at < $6 then excluded.owner_idx else standing.owner_idx end,
       finished_at = case when standing.finished_at < $6 then null else standing.finished_at end
returning owner_run, owner_idx, finished_at
;
-- Attempts whose worker never registered, has left, or is one of those given and has said nothing since it was last
-- heard of.
select tasks.run, tasks.idx, tasks.attempt, tasks.worker
  from tasks
  left join workers on workers.id = tasks.worker
 where tasks.worker is not null
   and (workers.id is null
        or exists (select from unnest($1::uuid[], $2::timestamptz[]) as silent (id, heard_at)
                    where silent.id = workers.id and silent.heard_at = workers.heard_at))
 order by tasks.run, tasks.idx
 limit $3
;
-- Chunks of an attempt's log from the one that holds the line asked for; a chunk holds at least one line,
-- so as many chunks as lines are wanted are enough. They lie where the run was created.
with place as materialized (select created_at from runs where id = $1)
select first, lines
  from logs
 where run = $1 and idx = $2 and attempt = $3 and run_at = (select created_at from place)
   and first >= coalesce((select max(first) from logs
                           where run = $1 and idx = $2 and attempt = $3 and first <= $4
                             and run_at = (select created_at from place)), 0)
 order by first
 limit $5
;
-- Counts places taken and given back. Limits are locked in the order of their ids.
with given as (
    select kind, tenant, name, places
      from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as given (kind, tenant, name, places)
), locked as (
    select limits.id, given.places
      from limits join given using (kind, tenant, name)
     order by limits.id
       for update of limits
)
update limits
   set used = greatest(limits.used + locked.places, 0)
  from locked
 where limits.id = locked.id
returning limits.id, limits.kind, limits.tenant, limits.name, limits.places, limits.used, limits.waiting,
          limits.frontier
;
-- Creates a backfill, unless it is there already.
insert into backfills (id, tenant, workflow, schedule, version, from_at, to_at, max_parallel, rerun, state,
                       created_at, created_by, finished_at, look_at, revision)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0)
on conflict do nothing
;
-- Creates runs, but for those whose id or whose schedule's logical date is taken: of these no row is written, and none of
-- their other rows may be. Answers which are new.
insert into runs (id, tenant, workflow, version, state, revision, counts, failures, events,
                  created_at, started_at, finished_at, error, checkup_at, logical_date,
                  parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule)
select id, tenant, workflow, version, state, revision, counts::int[], failures, events,
       created_at, started_at, finished_at, error, checkup_at, logical_date,
       parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule
  from unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::int[], $7::text[], $8::int[],
              $9::bigint[], $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::text[],
              $14::timestamptz[], $15::timestamptz[], $16::uuid[], $17::int[], $18::int[], $19::boolean[],
              $20::int[], $21::text[], $22::boolean[], $23::int[], $24::text[])
    as given (id, tenant, workflow, version, state, revision, counts, failures, events,
              created_at, started_at, finished_at, error, checkup_at, logical_date,
              parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, schedule)
on conflict do nothing
returning id
;
-- Creates tasks: those of a new run, or the children of a fan-out.
insert into tasks (run, idx, state, attempt, revision,
                   parents_done, parents_succeeded, parents_failed, parents_skipped,
                   worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided, tenant)
select given.run, given.idx, given.state, given.attempt, given.revision,
       given.parents_done, given.parents_succeeded, given.parents_failed, given.parents_skipped,
       given.worker, given.since, given.started_at, given.finished_at, given.failure::json,
       given.child_of, given.item, given.fan::int[], given.begun_at, given.handed_back, given.voided, runs.tenant
  from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[],
              $6::int[], $7::int[], $8::int[], $9::int[],
              $10::uuid[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[],
              $15::int[], $16::int[], $17::text[], $18::timestamptz[], $19::int[], $20::int[])
    as given (run, idx, state, attempt, revision,
              parents_done, parents_succeeded, parents_failed, parents_skipped,
              worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided)
  join runs on runs.id = given.run
;
-- Events from the number asked for on, but for those of children of fan-outs, save the child named: however many children
-- there are, only what is wanted is sent. A NUL, which no field could be taken out beside, reads as a space there.
with home as materialized (select created_at from runs where id = $1)
select events.seq + event.place - 1 as number, event.content
  from events
 cross join lateral json_array_elements(events.events) with ordinality as event (content, place)
 cross join lateral (select replace(event.content::text, '\u0000', '\u0020')::json as content) as legible
 where events.run = $1 and events.run_at = (select created_at from home)
   and events.seq >= coalesce((select max(seq) from events
                                where run = $1 and seq <= $2 and run_at = (select created_at from home)), 0)
   and events.seq + event.place - 1 >= $2
   and (legible.content -> 'child' is null or (legible.content ->> 'task')::int = $3)
 order by events.seq, event.place
 limit $4
;
-- Every task of the runs that has not ended. Their runs are locked, so the rows need no locks of their own.
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from tasks
 where run = any($1) and finished_at is null
 order by run, idx
;
-- Every task of the runs. Their runs are locked, so the rows need no locks of their own.
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from tasks
 where run = any($1)
 order by run, idx
;
-- Everything that is kept of runs, a document for each.
select json_build_object(
           'run', to_json(runs),
           'facts', (select to_json(run_facts) from run_facts where run_facts.run = runs.id),
           'tasks', (select json_agg(tasks order by tasks.idx) from tasks where tasks.run = runs.id),
           'attempts', (select json_agg(attempts order by attempts.idx, attempts.attempt) from attempts
                         where attempts.run = runs.id),
           'items', (select json_agg(items order by items.idx) from items where items.run = runs.id),
           'outputs', (select json_agg(outputs order by outputs.idx) from outputs where outputs.run = runs.id),
           'logs', (select json_agg(logs order by logs.idx, logs.attempt, logs.first) from logs
                     where logs.run = runs.id and logs.run_at = runs.created_at),
           'events', (select json_agg(events order by events.seq) from events
                       where events.run = runs.id and events.run_at = runs.created_at)
       ) as document
  from runs
 where runs.id = any($1)
 order by runs.finished_at, runs.id
;
-- Has a task wait for one that another run carries out. It waits for one at a time: the later wait stands.
insert into waiters (run, idx, attempt, owner_run, owner_idx)
values ($1, $2, $3, $4, $5)
    on conflict (run, idx) do update
   set attempt   = excluded.attempt,
       owner_run = excluded.owner_run,
       owner_idx = excluded.owner_idx
;
-- Has every unfinished run looked at now. They are locked in id order, as units lock them, so that this
-- cannot wait for a unit that waits for this.
with open as (
    select id from runs where finished_at is null order by id for update
)
update runs
   set checkup_at = least(runs.checkup_at, $1)
  from open
 where runs.id = open.id
;
-- How far tenants have come in lines.
insert into standings (lim, tenant, position, received)
select lim, tenant, position, received
  from unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[]) as given (lim, tenant, position, received)
    on conflict (lim, tenant) do update set position = excluded.position, received = excluded.received
;
-- How much of everything there is: unfinished runs by state, what the task counters of each tenant's come to by their place
-- among the counters and since when it waits in line, and the oldest of what is to go out or to fire. It reads what is
-- unfinished, never what has ended.
with unfinished as materialized (select tenant, state, counts from runs where finished_at is null)
select (select coalesce(json_object_agg(state, number), '{}')
          from (select state, count(*) as number from unfinished group by state) as counted) as runs,
       (select coalesce(json_agg(json_build_array(
                 tenants.name,
                 (select coalesce(json_object_agg(place, number), '{}')
                    from (select place, sum(number) as number
                            from unfinished, unnest(counts) with ordinality as each (number, place)
                           where unfinished.tenant = tenants.id
                           group by place) as counted),
                 (select min(since) from line where line.tenant = tenants.id and granted_at is null))
                 order by tenants.name collate "C"), '[]')
          from tenants) as tenants,
       (select created_at from outbox order by id limit 1) as unsent,
       (select min(wake_at) from timers) as timer,
       (select count(*)::int from (select from dead_letters limit $1) as kept) as dead_letters
;
-- How the database is: what it is, what time it has, how full and how busy it is, and what it does not let us do.
select current_setting('server_version_num')::int as version,
       (select max(version) from _sqlx_migrations where success) as migrated,
       clock_timestamp() as clock,
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
       current_setting('max_connections')::int as max_connections,
       (select min(xact_start) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')
           as oldest_transaction,
       array(select relname::text from pg_class
              where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
                and not has_table_privilege(oid, 'select, insert, update, delete')
              order by relname) as forbidden
;
-- Keeps attempts that are over. An attempt that was given up on and delivered after all is told again:
-- the later word about it stands.
insert into attempts (run, idx, attempt, state, worker, started_at, finished_at, failure, decision)
select run, idx, attempt, state, worker, started_at, finished_at, failure::json, decision
  from unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::uuid[],
              $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[])
    as given (run, idx, attempt, state, worker, started_at, finished_at, failure, decision)
    on conflict (run, idx, attempt) do update
   set state       = excluded.state,
       worker      = excluded.worker,
       started_at  = excluded.started_at,
       finished_at = excluded.finished_at,
       failure     = excluded.failure,
       decision    = excluded.decision
;
-- Lets a trigger pause, or go on; one that goes on and has a sensor looks at once.
update triggers
   set paused_at = $4, paused_reason = $5,
       failures = case when $4::timestamptz is null then 0 else failures end,
       due_at = case when $4::timestamptz is null and kind = 'sensor' then $6 else due_at end
 where tenant = $1 and workflow = $2 and name = $3
;
-- Limits that a task needs for the first time. One that is there already is neither changed nor locked: locks are taken
-- in the order of ids, and this is not it.
insert into limits (kind, tenant, name, places)
select kind, tenant, name, places
  from unnest($1::text[], $2::int[], $3::text[], $4::int[]) as given (kind, tenant, name, places)
 order by kind, tenant, name
    on conflict do nothing
;
-- Locks runs in id order, so that units that lock several cannot wait for each other in a circle. A run
-- that had to be waited for is returned as it is after the wait.
select id, tenant, workflow, version, state, revision, counts, failures, events,
       created_at, started_at, finished_at, error,
       parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority
  from runs
 where id = any($1)
 order by id
   for update
;
-- Makes a version that exists the active one, and says whether it exists and whether anything was written.
with version as (
    select id from versions where tenant = $1 and workflow = $2 and number = $3
),
changed as (
    update workflows
       set active_version = version.id, archived = false, updated_at = greatest(updated_at, $4)
      from version
     where workflows.tenant = $1 and workflows.name = $2
       and (workflows.archived or workflows.active_version is distinct from version.id)
    returning 1
)
select exists (select from version) as known, exists (select from changed) as changed
;
-- Makes the next version of a workflow, whose row is locked: so no one else takes the number.
insert into versions (tenant, workflow, number, hash, definition, source, created_at, created_by)
select $1, $2, coalesce(max(number), 0) + 1, $3, $4::text::json, $5, $6, $7
  from versions
 where tenant = $1 and workflow = $2
returning id, number
;
-- Notes up to which run, in the order of their ends, a part was deleted of those that ended in its state.
insert into retention (part, state, finished_at, run)
select $1, state, finished_at, id from runs where id = $2 and finished_at is not null
    on conflict (part, state) do update
   set finished_at = excluded.finished_at, run = excluded.run
;
-- Notes what a trigger heard of, unless it had before, and forgets a little of what is long ago.
with forgotten as (
    delete from trigger_events
     where (tenant, workflow, name, id) in (
         select tenant, workflow, name, id from trigger_events
          where tenant = $1 and workflow = $2 and name = $3 and at < $8
          order by at limit 10 for update skip locked
     )
)
insert into trigger_events (tenant, workflow, name, id, at, what, run)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (tenant, workflow, name, id) do nothing
;
-- One run as readers see it, if it is the tenant's.
select runs.id, runs.tenant, runs.workflow, runs.version, runs.state, runs.revision, runs.counts,
       runs.failures, runs.events, runs.created_at, runs.started_at, runs.finished_at, runs.error,
       runs.parent_run, runs.parent_idx, runs.parent_attempt, runs.parent_waits, runs.depth, runs.lane, runs.held, runs.priority,
       runs.logical_date, run_facts.inputs, run_facts.labels, run_facts.trigger_kind,
       run_facts.trigger_by, run_facts.schedule as planned_schedule,
       run_facts.interval_start, run_facts.interval_end, versions.number, parents.version as parent_version,
       starters.child_of as starter_child_of, starters.item as starter_item
  from runs
  join run_facts on run_facts.run = runs.id
  join versions on versions.id = runs.version
  left join runs as parents on parents.id = runs.parent_run
  left join tasks as starters on starters.run = runs.parent_run and starters.idx = runs.parent_idx
 where runs.tenant = $1 and runs.id = $2
;
-- One trigger, with what it heard of last.
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
 where triggers.tenant = $1 and triggers.workflow = $2 and triggers.name = $3
;
-- One workflow of a tenant with its active version.
select workflows.tenant, workflows.name, workflows.archived, workflows.updated_at,
       workflows.created_at as workflow_created_at,
       versions.id, versions.number, versions.hash, versions.definition, versions.source,
       versions.created_at, versions.created_by
  from workflows
  join versions on versions.id = workflows.active_version
 where workflows.tenant = $1 and workflows.name = $2
;
-- Records that a worker lives and returns what it was told to do and the attempts that are really its own, in one row
-- at least. Of two beats that overtake each other, the later instant stands.
with heard as (
    insert into workers (id, heard_at, function, queue, host, version, since) values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (id) do update
       -- A clock that was turned back must not make a living worker look silent.
       set heard_at = case when excluded.heard_at < workers.heard_at
                           then workers.heard_at + interval '1 microsecond' else excluded.heard_at end,
           function = coalesce(excluded.function, workers.function),
           queue    = coalesce(excluded.queue, workers.queue),
           host     = coalesce(excluded.host, workers.host),
           version  = coalesce(excluded.version, workers.version),
           since    = coalesce(excluded.since, workers.since)
    returning ordered, ordered_by, ordered_reason, ordered_at
)
select heard.*, tasks.run, tasks.idx, tasks.attempt, tasks.worker
  from heard
  left join tasks on tasks.worker = $1
 order by tasks.run, tasks.idx
;
-- Rows of events from the one that holds the number asked for; a row holds at least one event, so as many
-- rows as events are wanted are enough. They lie where the run was created.
with place as materialized (select created_at from runs where id = $1)
select seq, events
  from events
 where run = $1 and run_at = (select created_at from place)
   and seq >= coalesce((select max(seq) from events
                         where run = $1 and seq <= $2 and run_at = (select created_at from place)), 0)
 order by seq
 limit $3
;
-- Runs that ended in a state at or before an instant, those that ended first first, from where the part was last
-- deleted on. Whole runs are gone once they are deleted: there is no place to go on from.
select runs.id, runs.counts
  from runs
  left join retention on retention.part = $1 and retention.state = $2
 where runs.state = $2
   and runs.finished_at is not null
   and runs.finished_at <= $3
   and (retention.part is null or (runs.finished_at, runs.id) > (retention.finished_at, retention.run))
 order by runs.finished_at, runs.id
 limit $4
;
-- Runs with timers that are overdue and that nothing waits for: their task has ended, or their run has.
select overdue.run, count(*)::int as count, min(overdue.wake_at) as since
  from (select run, idx, task, wake_at from timers where wake_at <= $1 order by wake_at limit $2) as overdue
  join runs on runs.id = overdue.run
  left join tasks on tasks.run = overdue.run and tasks.idx = overdue.task
 where tasks.finished_at is not null or (overdue.task is null and runs.finished_at is not null)
 group by overdue.run
 order by overdue.run
;
-- Sets timers. Nothing has two of one kind: a later one takes the place of an earlier one.
insert into timers (run, idx, attempt, kind, wake_at)
select run, idx, attempt, kind, wake_at
  from unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::timestamptz[])
    as given (run, idx, attempt, kind, wake_at)
    on conflict (run, idx, kind) do update
   set attempt = excluded.attempt,
       wake_at = excluded.wake_at
;
-- Takes the event that a trigger holds back, if it is due and the trigger does not pause.
with due as (
    select tenant, workflow, name, held from triggers
     where tenant = $1 and workflow = $2 and name = $3 and due_at <= $4 and held is not null and paused_at is null
       for update
)
update triggers set held = null, due_at = null
  from due
 where triggers.tenant = due.tenant and triggers.workflow = due.workflow and triggers.name = due.name
returning due.held
;
-- The dates of a backfill, which wait for their turns.
insert into backfill_dates (backfill, date, interval_start, state, run, redo)
select $1, date, interval_start, 'waiting', run, redo
  from unnest($2::timestamptz[], $3::timestamptz[], $4::uuid[], $5::boolean[])
       as dates (date, interval_start, run, redo)
;
-- The first of each line, as many as there is room for, and of their tenants as many of the lowest rank: a turn belongs
-- to the tenant, which sends its best.
with heads as (
    select head.*
      from unnest($1::int[], $2::bigint[]) as given (lim, room)
     cross join lateral (
         select * from line
          where line.lim = given.lim and granted_at is null
          order by id, rank, run, idx
          limit given.room
     ) as head
), turns as (
    select lim, tenant, count(*) as turns from heads group by lim, tenant
)
select run, idx, attempt, tenant, step, needs, id, rank, since, granted_at from heads
union
select best.run, best.idx, best.attempt, best.tenant, best.step, best.needs, best.id, best.rank, best.since,
       best.granted_at
  from turns
 cross join lateral (
     select * from line
      where line.lim = turns.lim and line.tenant = turns.tenant and granted_at is null
      order by rank, id, run, idx
      limit turns.turns
 ) as best
;
-- The named tasks and the fan-outs that any of them is a child of, each once. Their runs are locked, so the rows need
-- no locks of their own.
with named as (
    select run, idx from unnest($1::uuid[], $2::int[]) as given (run, idx)
),
wanted as (
    select run, idx from named
     union
    select run, child_of from named join tasks using (run, idx) where child_of is not null
)
select run, idx, state, attempt, revision,
       parents_done, parents_succeeded, parents_failed, parents_skipped,
       worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided
  from wanted
  join tasks using (run, idx)
 order by run, idx
;
-- The tenants that stand in a limit's line or have been given places from it.
select standings.tenant, tenants.weight, standings.received, in_line.waiting, in_line.oldest
  from limits
  join standings on standings.lim = limits.id
  join tenants on tenants.id = standings.tenant
 cross join lateral (
     select count(*) as waiting, min(since) as oldest from line
      where line.lim = limits.id and line.tenant = standings.tenant and granted_at is null
 ) as in_line
 where limits.kind = $1 and limits.tenant = $2 and limits.name = $3
 order by standings.tenant
;
-- The triggers of a kind that are found by a key and do not pause.
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
 where triggers.tenant = $1 and triggers.kind = $2 and triggers.keys @> array[$3::text] and triggers.paused_at is null
 order by triggers.workflow, triggers.name
;
-- The triggers that are due and do not pause, the longest overdue first.
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
;
-- Timers that are due, of runs that nobody else has locked; these are locked, so that sweeps at the same time take
-- different ones. Nothing is waited for, so it does not matter in which order the runs are locked.
select timers.run, timers.idx, timers.attempt, timers.kind, timers.wake_at
  from timers
  join runs on runs.id = timers.run
 where timers.wake_at <= $1
 order by timers.wake_at
 limit $2
   for update of runs skip locked
;
-- Unfinished runs in id order, a page of them, with what their tasks come to: how many are in each of the given states,
-- how many were dispatched at or before the given instant, and when one last moved.
select runs.*,
       array(select count(tasks.idx)::int
               from unnest($4::text[]) with ordinality as known (state, place)
               left join tasks on tasks.run = runs.id and tasks.state = known.state
              group by known.place order by known.place) as seen,
       (select count(*)::int from tasks
         where tasks.run = runs.id and tasks.state = 'dispatched' and tasks.since <= $3) as unheard,
       (select max(tasks.since) from tasks where tasks.run = runs.id) as moved_at
  from (select id, tenant, workflow, version, state, revision, counts, failures, events,
               created_at, started_at, finished_at, error,
               parent_run, parent_idx, parent_attempt, parent_waits, depth, lane, held, priority, checkup_at
          from runs
         where finished_at is null and ($1::uuid is null or id > $1)
         order by id
         limit $2) as runs
 order by runs.id
;
-- What a backfill could do next, all as of one moment: how many of its runs are under way, and the first dates that
-- wait or were claimed and not begun. Whoever claimed a date has a run under way.
with active as (
    select count(*)::integer as active,
           coalesce(bool_or(dates.redo), false) as redoing
      from backfill_dates as dates left join runs on runs.id = dates.run
     where dates.backfill = $1
       and (dates.state = 'claimed' or dates.state = 'begun' and runs.id is not null and runs.finished_at is null)
),
next as (
    (select date, interval_start, state as step, run, redo from backfill_dates
      where backfill = $1 and state = 'waiting' order by date limit $2)
    union all
    (select date, interval_start, state as step, run, redo from backfill_dates
      where backfill = $1 and state = 'claimed' order by date limit $2)
)
select active.active, active.redoing, next.date, next.interval_start, next.step, next.run, next.redo
  from active left join next on true
 order by next.date
;
-- What tasks in a row delivered, of those that succeeded; null for one that delivered nothing.
select tasks.idx, outputs.output
  from tasks
  left join outputs on outputs.run = tasks.run and outputs.idx = tasks.idx
 where tasks.run = $1 and tasks.idx >= $2 and tasks.idx < $3 and tasks.state = 'succeeded'
;
-- What the rows of a locked run come to: how many tasks are in each of the given states, which tasks of the definition
-- ended badly, and whose timers nothing waits for.
select array(select count(tasks.idx)::int
               from unnest($2::text[]) with ordinality as known (state, place)
               left join tasks on tasks.run = $1 and tasks.state = known.state
              group by known.place order by known.place) as counts,
       array(select idx from tasks
              where run = $1 and child_of is null and state in ('failed', 'upstream_failed')
              order by idx) as ended_badly,
       array(select distinct timers.idx
               from timers
               join runs on runs.id = timers.run
               left join tasks on tasks.run = timers.run and tasks.idx = timers.task
              where timers.run = $1
                and (tasks.finished_at is not null or (timers.task is null and runs.finished_at is not null))
              order by timers.idx) as orphaned_timers
;
-- When the first of each kind of thing is due. A worker that holds an attempt and is not registered counts
-- as silent since the epoch.
select (select min(wake_at) from timers) as timer,
       least((select min(wake_at) from timers where wake_at > $1),
             (select min(look_at) from schedules where look_at > $1),
             (select min(look_at) from backfills where look_at > $1)) as next_timer,
       (select min(look_at) from schedules where look_at is not null) as schedule,
       (select min(look_at) from backfills where look_at is not null) as backfill,
       (select min(checkup_at) from runs where checkup_at is not null) as checkup,
       (select created_at from outbox order by id limit 1) as unsent,
       (select min(granted_at) from line where granted_at is not null) as granted,
       exists (select from limits where waiting > 0 and (places is null or used < places)) as room,
       least((select min(heard_at) from workers),
             (select timestamptz 'epoch'
               where exists (select from tasks
                              where worker is not null
                                and not exists (select from workers where workers.id = tasks.worker)))) as worker,
       (select next_at from retention_turn) as retention,
       (select min(due_at) from triggers where due_at is not null and paused_at is null) as trigger
;
-- Where tasks stand, or that they were granted their places.
insert into line (run, idx, attempt, tenant, lim, step, needs, id, rank, since, granted_at)
select run, idx, attempt, tenant, lim, step, needs::int[], id, rank, since, granted_at
  from unnest($1::uuid[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::text[], $8::bigint[],
              $9::bigint[], $10::timestamptz[], $11::timestamptz[])
       as given (run, idx, attempt, tenant, lim, step, needs, id, rank, since, granted_at)
    on conflict (run, idx) do update
   set attempt = excluded.attempt, lim = excluded.lim, step = excluded.step, needs = excluded.needs,
       id = excluded.id, rank = excluded.rank, since = excluded.since, granted_at = excluded.granted_at
;
-- Whether a run that was created in a span of time still needs what is kept of it: all of them do while they are there, or
-- only those that have not ended at or before an instant.
select exists (
    select from tenants
     cross join lateral (select from runs
                          where runs.tenant = tenants.id and runs.created_at >= $1 and runs.created_at < $2
                            and ($4 or runs.finished_at is null or runs.finished_at > $3)
                          limit 1) as one
) as needed
;
-- Writes a schedule over the revision it was read at.
update schedules
   set definition = $4::text::json, decided_until = $5, owed = $6, owed_until = $7, look_at = $8,
       paused_at = $9, paused_by = $10, pause_reason = $11, problem = $12, last_date = $13, drift = $14,
       revision = revision + 1
 where tenant = $1 and workflow = $2 and name = $3 and revision = $15
;
-- Writes runs, each only over the revision it was read at. A run that was changed in between matches no
-- row: whoever asked must count the rows, and give up everything if one is missing. What is looked at by
-- the sweep stays as it is where `keep` says so, unless an earlier time is given: then no index is touched.
update runs
   set state       = given.state,
       revision    = runs.revision + 1,
       counts      = given.counts::int[],
       failures    = given.failures,
       events      = given.events,
       started_at  = given.started_at,
       finished_at = given.finished_at,
       error       = given.error,
       held        = given.held,
       checkup_at  = case when given.keep then least(runs.checkup_at, given.checkup_at) else given.checkup_at end
  from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::int[], $6::bigint[],
              $7::timestamptz[], $8::timestamptz[], $9::text[], $10::boolean[], $11::timestamptz[],
              $12::boolean[])
    as given (id, revision, state, counts, failures, events,
              started_at, finished_at, error, keep, checkup_at, held)
 where runs.id = given.id and runs.revision = given.revision
;
-- Writes tasks, each only over the revision it was read at. A task that was changed in between matches no
-- row: whoever asked must count the rows, and give up everything if one is missing.
update tasks
   set state             = given.state,
       attempt           = given.attempt,
       revision          = tasks.revision + 1,
       parents_done      = given.parents_done,
       parents_succeeded = given.parents_succeeded,
       parents_failed    = given.parents_failed,
       parents_skipped   = given.parents_skipped,
       worker            = given.worker,
       since             = given.since,
       started_at        = given.started_at,
       finished_at       = given.finished_at,
       failure           = given.failure::json,
       child_of          = given.child_of,
       item              = given.item,
       fan               = given.fan::int[],
       begun_at          = given.begun_at,
       handed_back       = given.handed_back,
       voided            = given.voided
  from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::int[],
              $6::int[], $7::int[], $8::int[], $9::int[],
              $10::uuid[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[],
              $15::int[], $16::int[], $17::text[], $18::timestamptz[], $19::int[], $20::int[])
    as given (run, idx, state, attempt, revision,
              parents_done, parents_succeeded, parents_failed, parents_skipped,
              worker, since, started_at, finished_at, failure, child_of, item, fan, begun_at, handed_back, voided)
 where tasks.run = given.run and tasks.idx = given.idx and tasks.revision = given.revision
;
delete from attempts where run = any($1)
;
delete from dead_letters where id = $1
;
delete from events_other where run = any($1)
;
delete from items where run = any($1)
;
delete from line using unnest($1::uuid[], $2::int[]) as given (run, idx)
              where line.run = given.run and line.idx = given.idx
;
delete from logs_other where run = any($1)
;
delete from outputs using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where outputs.run = given.run and outputs.idx = given.idx
;
delete from outputs where run = any($1)
;
delete from run_facts where run = any($1)
;
delete from runs where id = any($1)
;
delete from schedules where tenant = $1 and workflow = $2
;
delete from schedules where tenant = $1 and workflow = $2 and name <> all($3)
;
delete from shared_tasks using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where owner_run = given.run and owner_idx = given.idx
;
delete from shared_tasks where owner_run = any($1)
;
delete from shared_tasks where owner_run = any($1) and finished_at is not null
;
delete from signals using unnest($1::uuid[], $2::text[]) as given (run, name)
          where signals.run = given.run and signals.name = given.name
;
delete from signals where run = any($1)
;
delete from tasks where run = any($1)
;
delete from timers using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where timers.run = given.run and timers.idx = given.idx
;
delete from timers where run = any($1)
;
delete from triggers where tenant = $1 and workflow = $2
;
delete from triggers where tenant = $1 and workflow = $2 and name <> all ($3)
;
delete from waiters using unnest($1::uuid[], $2::int[]) as given (run, idx)
          where waiters.run = given.run and waiters.idx = given.idx
;
delete from waiters where run = any($1)
;
delete from workers using unnest($1::uuid[], $2::timestamptz[]) as silent (id, heard_at)
          where workers.id = silent.id and workers.heard_at = silent.heard_at
;
delete from workers where id = $1 returning ordered, ordered_by, ordered_reason, ordered_at
;
insert into dead_letters (id, source, reason, body, at) values ($1, $2, $3, $4, $5)
         on conflict do nothing
;
insert into events (run, run_at, seq, count, events)
         select run, run_at, seq, count, events::json
           from unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::int[], $5::text[])
             as given (run, run_at, seq, count, events)
;
insert into items (run, idx, item)
         select run, idx, item::json from unnest($1::uuid[], $2::int[], $3::text[]) as given (run, idx, item)
;
insert into limits (kind, tenant, name, places) values ($1, $2, $3, $4)
             on conflict (kind, tenant, name) do update set places = excluded.places
;
insert into logs (run, run_at, idx, attempt, first, count, lines)
         select id, created_at, $2::int, $3::int, $4::int, $5::int, $6::text::json from runs where id = $1
         on conflict do nothing
;
insert into outbox (created_at, kind, body) values ($1, $2, $3::text::json) returning id
;
insert into outputs (run, idx, output)
         select run, idx, output::json from unnest($1::uuid[], $2::int[], $3::text[]) as given (run, idx, output)
;
insert into run_facts (run, inputs, labels, trigger_kind, trigger_by, schedule, interval_start, interval_end)
         select run, inputs::json, labels::json, trigger_kind, trigger_by, schedule, interval_start, interval_end
           from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                       $8::timestamptz[])
             as given (run, inputs, labels, trigger_kind, trigger_by, schedule, interval_start, interval_end)
;
insert into schedules (tenant, workflow, name, definition, decided_until, look_at, drift, revision)
         values ($1, $2, $3, $4::text::json, $5, $6, $7, 0)
;
insert into signals (run, name, payload)
         select run, name, payload::json
           from unnest($1::uuid[], $2::text[], $3::text[]) as given (run, name, payload)
         on conflict (run, name) do update set payload = excluded.payload
;
insert into tenants (id, name, created_at)
         select max(id) + 1, $1, $2 from tenants having not bool_or(name = $1)
;
insert into workflows (tenant, name, created_at, updated_at) values ($1, $2, $3, $3)
         on conflict do nothing
;
select * from backfills
              where tenant = $1 and ($2::text is null or workflow = $2)
                and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
              order by created_at desc, id desc limit $5
;
select * from backfills where id = $1
;
select * from backfills where look_at <= $1 order by look_at, id limit $2
;
select * from schedules
              where tenant = $1 and ($2::text is null or workflow = $2)
                and ($3::text is null or (workflow, name) > ($3, $4::text))
              order by workflow, name limit $5
;
select * from schedules where look_at <= $1 order by look_at, tenant, workflow, name limit $2
;
select * from schedules where tenant = $1 and workflow = $2 for update
;
select active_version, archived from workflows
          where tenant = $1 and name = $2 and active_version is not null
;
select at from dead_letters where at <= $1 order by at desc limit $2
;
select case when dates.state = 'waiting' then 'waiting' when dates.state = 'claimed' then 'queued'
                         else coalesce(runs.state, 'forgotten') end as standing, count(*)::integer as count
               from backfill_dates as dates left join runs on runs.id = dates.run
              where backfill = $1 group by 1
;
select checkup_at as at from runs where checkup_at <= $1 order by checkup_at limit $2
;
select count(*)::int as runs from trigger_events
              where tenant = $1 and workflow = $2 and name = $3 and at >= $4 and run is not null
;
select created_at as at from (select id, created_at from outbox order by id limit $2) as oldest
              where created_at <= $1
;
select dates.date, dates.interval_start, dates.state as step, dates.run, dates.redo, runs.state
               from backfill_dates as dates join runs on runs.id = dates.run
              where backfill = $1 and dates.state = 'begun' and runs.state = any($2) order by dates.date limit $3
;
select exists (select from retention
                  where part = $1 and state = $2 and (finished_at, run) >= ($3, $4))
;
select format('grant %I to %I', current_user, $1::text)
;
select from workflows where tenant = $1 and name = $2 for update
;
select given.lim, tenants.id as tenant, tenants.weight,
                coalesce(position, 0) as position, coalesce(received, 0) as received
           from tenants cross join unnest($1::int[]) as given (lim)
           left join standings on standings.lim = given.lim and standings.tenant = tenants.id
          where tenants.id = any($2)
;
select id as event_id, at as event_at, what as event_what, run as event_run from trigger_events
              where tenant = $1 and workflow = $2 and name = $3 order by at desc, id limit $4
;
select id from runs where checkup_at <= $1 order by checkup_at, id limit $2
;
select id from runs where id = $1 or (tenant = $2 and workflow = $3 and logical_date = $4 and schedule = $5)
         order by id <> $1 limit 1
;
select id from runs where id = any($1) and finished_at is not null order by id for update
;
select id from tenants where name = $1
;
select id, body from outbox where created_at <= $1 order by id limit $2
;
select id, heard_at from workers where heard_at < $1 order by heard_at, id limit $2
;
select id, held from runs
          where tenant = $1 and workflow = $2 and lane = $3 and finished_at is null
          order by created_at, id limit $4
;
select id, kind, tenant, name, places, used, waiting, frontier
           from limits join unnest($1::text[], $2::int[], $3::text[]) as given (kind, tenant, name)
          using (kind, tenant, name)
;
select id, kind, tenant, name, places, used, waiting, frontier from limits
              where id = any($1) order by id for update skip locked
;
select id, kind, tenant, name, places, used, waiting, frontier from limits
              where waiting > 0 and (places is null or used < places) order by id for update
;
select id, kind, tenant, name, places, used, waiting, frontier from limits
          where id = any($1) order by id for update
;
select id, logical_date, state from runs
              where tenant = $1 and workflow = $2 and schedule = $3 and logical_date between $4 and $5
;
select id, number from versions where tenant = $1 and workflow = $2 and hash = $3
;
select id, source, reason, body, at from dead_letters where id = $1
;
select id, state from runs where tenant = $1 and workflow = $2 and logical_date = $3
              order by created_at desc, id desc limit 1
;
select id, tenant, number, hash, definition, source, created_at, created_by
           from versions where tenant = $1 and workflow = $2 and number = $3
;
select id, tenant, number, hash, definition, source, created_at, created_by from versions where id = $1
;
select idx, attempt, state, worker, started_at, finished_at, failure, decision
           from attempts where run = $1 and idx = $2 order by attempt
;
select idx, item from items where run = $1 and idx = any($2)
;
select idx, output from outputs where run = $1 and idx = any($2)
;
select inputs, labels, trigger_kind, trigger_by, logical_date, run_facts.schedule as planned_schedule,
                interval_start, interval_end
           from run_facts join runs on runs.id = run_facts.run where run = $1
;
select item from items where run = $1 and idx = $2
;
select json_build_object('run', run, 'task', idx, 'output', output) as document
               from outputs where run = any($1) order by run, idx
;
select kind, limits.tenant, name, places, used, own.since, own.granted_at is not null as granted,
                (select count(*) from line as other
                  where other.lim = own.lim and other.granted_at is null
                    and (other.id, other.rank, other.run, other.idx) < (own.id, own.rank, own.run, own.idx)
                ) as ahead
           from line as own join limits on limits.id = own.lim where own.run = $1 and own.idx = $2
;
select kind, tenant, name, places, used, waiting,
                (select min(since) from line where lim = limits.id and granted_at is null) as oldest
           from limits where tenant in (0, $1) order by kind, name
;
select ordered, ordered_by, ordered_reason, ordered_at from workers where id = $1
;
select output from outputs where run = $1 and idx = $2
;
select payload from signals where run = $1 and name = $2
;
select pg_advisory_xact_lock(hashtextextended($2 || E'\\n' || $3, $1))
;
select relname::text as name from pg_inherits join pg_class on pg_class.oid = inhrelid
          where inhparent = $1::text::regclass order by relname
;
select run, idx, attempt from line where granted_at <= $1 order by granted_at, run, idx limit $2
;
select run, idx, attempt from waiters where owner_run = $1 and owner_idx = $2
          order by run, idx limit $3
;
select run, idx, attempt, kind, wake_at from timers where wake_at <= $1
          order by wake_at, run, idx, kind limit $2
;
select run, idx, attempt, tenant, step, needs, id, rank, since, granted_at
           from line join unnest($1::uuid[], $2::int[]) as given (run, idx) using (run, idx)
;
select tasks.since as at from tasks left join workers on workers.id = tasks.worker
              where tasks.worker is not null and (workers.heard_at is null or workers.heard_at < $1) limit $2
;
select to_json(logs) as document from runs join logs on logs.run = runs.id and logs.run_at = runs.created_at
              where runs.id = any($1) order by logs.run, idx, attempt, first
;
select wake_at as at from timers where wake_at <= $1 order by wake_at limit $2
;
update backfill_dates set state = $4, run = $5, redo = $6
              where backfill = $1 and date = $2 and state = $3
;
update backfills set state = $2, finished_at = $3, look_at = $4, problem = $5, revision = revision + 1
              where id = $1 and revision = $6
;
update limits
            set places = given.places, used = given.used, waiting = given.waiting, frontier = given.frontier
           from unnest($1::int[], $2::int[], $3::int[], $4::int[], $5::bigint[])
             as given (id, places, used, waiting, frontier)
          where limits.id = given.id
            and (limits.places, limits.used, limits.waiting, limits.frontier)
                is distinct from (given.places, given.used, given.waiting, given.frontier)
;
update retention_turn set next_at = $1
;
update retention_turn set next_at = $2 where next_at <= $1
;
update runs set checkup_at = $3 where id = $1 and checkup_at <= $2
;
update shared_tasks set finished_at = given.finished_at
           from unnest($1::uuid[], $2::int[], $3::timestamptz[]) as given (run, idx, finished_at)
          where owner_run = given.run and owner_idx = given.idx and shared_tasks.finished_at is null
;
update tenants set weight = $2 where id = $1
;
update timers set wake_at = $3 where run = $1 and wake_at <= $2
;
update triggers
                set watermark = $5::text::json, due_at = $6, failures = $7,
                    paused_at = coalesce($8, paused_at), paused_reason = coalesce($9, paused_reason), revision = revision + 1
              where tenant = $1 and workflow = $2 and name = $3 and revision = $4
;
update triggers set due_at = $5 where tenant = $1 and workflow = $2 and name = $3 and due_at = $4
;
update triggers set held = $4::text::json, due_at = $5
              where tenant = $1 and workflow = $2 and name = $3
;
update workers set ordered = $2, ordered_by = $3, ordered_reason = $4, ordered_at = $5
          where id = $1 and (ordered is null or (ordered = 'drain' and $2 = 'kill'))
;
update workflows set active_version = $3, archived = false, updated_at = greatest(updated_at, $4)
          where tenant = $1 and name = $2 and (archived or active_version is distinct from $3)
;
update workflows set archived = true, updated_at = greatest(updated_at, $3)
          where tenant = $1 and name = $2 and not archived
;
with hasty as materialized (select set_config('synchronous_commit', 'off', true))
                      delete from outbox using hasty where id = any($1)
