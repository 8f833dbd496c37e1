-- A page of a tenant's workflows in use, by name, each with its active version.
select workflows.tenant, workflows.name, workflows.archived, workflows.updated_at,
       workflows.created_at as workflow_created_at, workflows.paused_at, workflows.paused_by, workflows.pause_reason,
       versions.id, versions.number, versions.hash, versions.definition, versions.source,
       versions.created_at, versions.created_by
  from workflows
  join versions on versions.id = workflows.active_version
 where workflows.tenant = $1 and not workflows.archived
   and ($2::text is null or workflows.name > $2)
 order by workflows.name
 limit $3
