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
