-- A workflow of which nothing begins by itself until somebody lets it go on.
alter table workflows
    add column paused_at    timestamptz,
    add column paused_by    text,
    add column pause_reason text,
    add constraint whoever_pauses_a_workflow_is_known check ((paused_at is null) = (paused_by is null)),
    add constraint only_a_pause_has_a_reason check (pause_reason is null or paused_at is not null);

-- Workflows in the order in which they last changed.
create index workflows_by_change on workflows (tenant, updated_at desc, name desc);
