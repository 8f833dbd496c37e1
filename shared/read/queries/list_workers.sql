-- A page of the workers that are alive or died after $4, each with the attempts that it holds of one tenant: a row for each attempt, and
-- one for a worker without any.
with page as (
    select *, (select count(*) from tasks where worker = workers.id) as holding
      from workers
     where id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       and (dead_at is null or dead_at > $4)
     order by id
     limit $3
)
select page.*, tasks.run, tasks.idx, tasks.attempt, tasks.worker, tasks.child_of, tasks.item, tasks.started_at,
       runs.version as run_version
  from page
  left join tasks on tasks.worker = page.id and tasks.tenant = $1
  left join runs on runs.id = tasks.run
 order by page.id, tasks.run, tasks.idx
