-- The workers of each queue that are alive or died after $1, and the tasks that wait for a remote one. Workers that take
-- whatever is pushed to them have no queue.
with each as (
    select queue, command, dead_at, tasks_done,
           (select count(*) from tasks where worker = workers.id) as holding,
           (remote ->> 'slots')::bigint as slots
      from workers
     where dead_at is null or dead_at > $1
), counted as (
    select queue,
           count(*) filter (where dead_at is null and command is null) as workers,
           count(*) filter (where dead_at is null and command is not null) as draining,
           count(*) filter (where dead_at is not null) as dead,
           coalesce(sum(slots) filter (where dead_at is null), 0)::bigint as slots,
           coalesce(sum(holding), 0)::bigint as holding,
           coalesce(sum(tasks_done), 0)::bigint as tasks_done,
           0::bigint as offered
      from each
     group by queue
    union all
    select queue, 0, 0, 0, 0, 0, 0, count(*) from offers group by queue
)
select queue, sum(workers)::bigint as workers, sum(draining)::bigint as draining, sum(dead)::bigint as dead,
       sum(slots)::bigint as slots, sum(holding)::bigint as holding, sum(tasks_done)::bigint as tasks_done,
       sum(offered)::bigint as offered
  from counted
 group by queue
 order by queue collate "C" nulls first
