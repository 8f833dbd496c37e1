-- The failures of some tasks of a run, without their details, and of a long message the beginning. A NUL, which Postgres cannot
-- extract as text, reads as a space.
select tasks.idx,
       json_build_object(
           'class', legible.failure -> 'class', 'exit_code', legible.failure -> 'exit_code', 'signal', legible.failure -> 'signal',
           'message', case when char_length(legible.failure ->> 'message') <= 2000 then legible.failure ->> 'message'
                           else left(legible.failure ->> 'message', 2000) || '…'
                       end) as failure
  from tasks
 cross join lateral (select replace(tasks.failure::text, '\u0000', '\u0020')::json as failure) as legible
 where tasks.run = $1 and tasks.idx = any($2) and tasks.failure is not null
 order by tasks.idx
