-- A page of unfinished runs in id order, with what their tasks add up to: how many are in each of the given states, how
-- many were dispatched at or before the given instant, and when one last changed.
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
               parent_run, parent_idx, parent_attempt, parent_waits, depth, concurrency_group, waiting, priority, recheck_at
          from runs
         where finished_at is null and ($1::uuid is null or id > $1)
         order by id
         limit $2) as runs
 order by runs.id
