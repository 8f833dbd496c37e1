-- The failures of some tasks of a run, without their details, and of a long message the beginning. The message is cut as JSON,
-- without what would be half of an escape. A NUL, which no field could be taken out beside, reads as a space.
select tasks.idx,
       json_build_object(
           'class', legible.failure -> 'class', 'exit_code', legible.failure -> 'exit_code', 'signal', legible.failure -> 'signal',
           'message', case when char_length((legible.failure -> 'message')::text) <= 2000
                           then legible.failure -> 'message'
                           else (regexp_replace(left((legible.failure -> 'message')::text, 2000),
                                                '\\+(u[0-9a-f]{0,3})?$', '') || '…"')::json
                       end) as failure
  from tasks
 cross join lateral (select replace(tasks.failure::text, '\u0000', '\u0020')::json as failure) as legible
 where tasks.run = $1 and tasks.idx = any($2) and tasks.failure is not null
 order by tasks.idx
