-- A run, and above it the runs whose tasks wait for the one below.
with recursive ancestors as (
    select $1::uuid as id
    union
    select runs.parent_run
      from ancestors
      join runs on runs.id = ancestors.id
     where runs.parent_waits
)
select id from ancestors
