-- What starts runs by itself: events, webhooks, other workflows, sensors.

-- One row per trigger of a workflow's active version. It is found by its keys (types of events, names of workflows),
-- so that an event costs one look into an index however many workflows there are.
create table triggers (
    tenant        integer          not null,
    workflow      text collate "C" not null,
    name          text collate "C" not null,
    kind          text             not null,
    keys          text[]           not null,
    definition    json             not null,
    -- When a sensor looks again, or when the event that is held back starts a run.
    due_at        timestamptz,
    held          json,
    -- What a sensor has seen.
    watermark     json,
    failures      integer          not null default 0,
    -- Counts what a sensor saw; a write that names another one is refused.
    revision      bigint           not null default 0,
    paused_at     timestamptz,
    paused_reason text,
    primary key (tenant, workflow, name),
    constraint a_trigger_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint a_trigger_is_of_a_known_kind check (kind in ('event', 'webhook', 'workflow', 'sensor')),
    constraint a_paused_trigger_says_why check ((paused_at is null) = (paused_reason is null)),
    constraint what_is_held_back_is_due check (held is null or due_at is not null),
    constraint a_trigger_counts_from_zero check (failures >= 0 and revision >= 0)
);

create index triggers_by_key on triggers using gin (keys);
create index triggers_by_time on triggers (due_at) where due_at is not null and paused_at is null;

-- What a trigger has heard of: the same event again starts nothing. It outlives the trigger.
create table trigger_events (
    tenant   integer          not null,
    workflow text collate "C" not null,
    name     text collate "C" not null,
    id       uuid             not null,
    at       timestamptz      not null,
    what     text             not null,
    run      uuid,
    primary key (tenant, workflow, name, id)
);

create index trigger_events_by_time on trigger_events (tenant, workflow, name, at desc, id);
