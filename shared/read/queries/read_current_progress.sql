-- What the current attempts at some tasks of a run reported, of each metric only the newest value; before it, of the earlier
-- attempts since the task was cleared, the phase that the last one with a phase was in.
select reported.idx, reported.attempt, reported.at, reported.fraction, reported.message, reported.phase, reported.metrics
  from tasks
 cross join lateral (
     (select idx, attempt, at, null::float8 as fraction, null::text as message, phase, '{}'::json as metrics
        from progress
       where progress.run = tasks.run and progress.idx = tasks.idx and phase is not null
         and progress.attempt > tasks.voided and progress.attempt < tasks.attempt
       order by attempt desc limit 1)
     union all
     (select idx, attempt, at, fraction, message, phase,
             (select coalesce(json_object_agg(metric.key, json_build_array(metric.value -> -1)), '{}'::json)
                from json_each(progress.metrics) as metric) as metrics
        from progress
       where progress.run = tasks.run and progress.idx = tasks.idx and progress.attempt = tasks.attempt)
 ) as reported
 where tasks.run = $1 and tasks.idx = any($2)
 order by reported.idx, reported.attempt
