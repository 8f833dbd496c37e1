-- What the rows of a locked run add up to: how many tasks are in each of the given states, which tasks of the definition
-- failed, and whose timers nothing waits for.
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
