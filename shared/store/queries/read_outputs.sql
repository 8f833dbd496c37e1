-- The outputs of some tasks of a run, of those that have one; none of them, but their rows, if they have more than $3 bytes
-- together.
select idx, case when sum(bytes) over () <= $3 then output end as output
  from (select idx, output, octet_length(output::text) as bytes from outputs where run = $1 and idx = any($2)) as sized
