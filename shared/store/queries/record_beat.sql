-- Records that a worker lives and returns the attempts that are really its own. Of two beats that overtake
-- each other, the later instant stands.
with heard as (
    insert into workers (id, heard_at) values ($1, $2)
    on conflict (id) do update set heard_at = greatest(workers.heard_at, excluded.heard_at)
)
select run, idx, attempt, worker from tasks where worker = $1 order by run, idx
