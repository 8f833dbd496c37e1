-- Records up to which run, in the order of their ends, a part of the runs that ended in a state was deleted.
insert into retention (part, state, finished_at, run)
select $1, state, finished_at, id from runs where id = $2 and finished_at is not null
    on conflict (part, state) do update
   set finished_at = excluded.finished_at, run = excluded.run
