-- The custom task types of a tenant's workflows in use, those of the newest versions first.
select workflows.name, versions.definition -> 'types' as types
  from workflows
  join versions on versions.id = workflows.active_version
 where workflows.tenant = $1 and not workflows.archived
   and (versions.definition -> 'types') is not null
 order by versions.created_at desc, workflows.name
 limit $2
