-- Workflows and their versions.

-- A workflow is a name and the version that new runs use. Names sort by their bytes, in every locale.
create table workflows (
    tenant         integer          not null references tenants,
    name           text collate "C" not null,
    archived       boolean          not null default false,
    -- Null only inside the transaction that creates the workflow and its first version.
    active_version bigint,
    created_at     timestamptz      not null,
    updated_at     timestamptz      not null,
    -- While a workflow is paused, no new runs of it start.
    paused_at      timestamptz,
    paused_by      text,
    pause_reason   text,
    primary key (tenant, name),
    constraint a_workflow_has_a_name check (name <> ''),
    constraint a_workflow_changes_after_it_was_made check (updated_at >= created_at),
    constraint a_paused_workflow_has_an_actor check ((paused_at is null) = (paused_by is null)),
    constraint only_a_pause_has_a_reason check (pause_reason is null or paused_at is not null)
);

create index workflows_by_change on workflows (tenant, updated_at desc, name desc);

-- A version never changes. Registering the same content again creates no new version.
create table versions (
    id         bigint           not null generated always as identity primary key,
    tenant     integer          not null,
    workflow   text collate "C" not null,
    number     integer          not null,
    hash       text             not null,
    definition json             not null,
    source     text             not null,
    created_at timestamptz      not null,
    created_by text             not null,
    constraint a_number_names_one_version unique (tenant, workflow, number),
    constraint the_same_content_is_the_same_version unique (tenant, workflow, hash),
    constraint a_version_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint versions_are_numbered_from_one check (number >= 1),
    constraint a_version_has_a_hash check (hash <> '')
);

alter table workflows
    add constraint the_active_version_exists foreign key (active_version) references versions;
