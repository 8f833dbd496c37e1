-- Creates the next version of a workflow, whose row is locked: no other transaction takes the number.
insert into versions (tenant, workflow, number, hash, definition, source, created_at, created_by)
select $1, $2, coalesce(max(number), 0) + 1, $3, $4::text::json, $5, $6, $7
  from versions
 where tenant = $1 and workflow = $2
returning id, number
