-- Whether a run that was created in a span of time still needs its partition: while it exists, or only until it ended at
-- or before an instant.
select exists (
    select from tenants
     cross join lateral (select from runs
                          where runs.tenant = tenants.id and runs.created_at >= $1 and runs.created_at < $2
                            and ($4 or runs.finished_at is null or runs.finished_at > $3)
                          limit 1) as one
) as needed
