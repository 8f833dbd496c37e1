-- How much a tenant uses of its quotas. No more than the quota is counted.
select (select count(*)::int from (select from runs where tenant = $1 and state = any ($2) limit $3) as unfinished) as runs,
       (select count(*)::int from (select from workflows where tenant = $1 limit $3) as registered) as workflows
