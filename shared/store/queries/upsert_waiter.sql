-- Makes a task wait for one that another run executes. It waits for one at a time: the later wait stands.
insert into shared_task_waiters (run, idx, attempt, owner_run, owner_idx)
values ($1, $2, $3, $4, $5)
    on conflict (run, idx) do update
   set attempt   = excluded.attempt,
       owner_run = excluded.owner_run,
       owner_idx = excluded.owner_idx
