-- Makes a version that exists the active one. Returns whether it exists and whether anything was written.
with version as (
    select id from versions where tenant = $1 and workflow = $2 and number = $3
),
changed as (
    update workflows
       set active_version = version.id, archived = false, updated_at = greatest(updated_at, $4)
      from version
     where workflows.tenant = $1 and workflows.name = $2
       and (workflows.archived or workflows.active_version is distinct from version.id)
    returning 1
)
select exists (select from version) as known, exists (select from changed) as changed
