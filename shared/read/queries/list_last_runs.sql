-- The last runs of some workflows of a tenant, at most $3 of each: each workflow costs its own few rows of an index.
select last.id, last.workflow, last.version, last.state, last.created_at, last.started_at, last.finished_at
  from unnest($2::text[]) as wanted (workflow)
 cross join lateral (select id, workflow, version, state, created_at, started_at, finished_at
                       from runs
                      where runs.tenant = $1 and runs.workflow = wanted.workflow
                      order by runs.created_at desc, runs.id desc
                      limit $3) as last
 order by last.workflow collate "C", last.created_at desc, last.id desc
