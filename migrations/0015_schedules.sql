-- When workflows run by themselves.

-- A logical date is taken once per workflow by its only schedule and by people, and once by each further schedule:
-- these have names here.
alter table runs add column schedule text collate "C" not null default '';

drop index one_run_per_workflow_and_date;
create unique index one_run_per_workflow_schedule_and_date on runs (tenant, workflow, logical_date, schedule)
    where logical_date is not null;

-- Of which schedule a run is, and what it is about.
alter table run_facts
    add column schedule       text,
    add column interval_start timestamptz,
    add column interval_end   timestamptz,
    add constraint a_run_of_a_schedule_has_an_interval check (
        num_nulls(schedule, interval_start, interval_end) in (0, 3) and interval_start <= interval_end
    );

-- A schedule of a workflow's active version, and how far it has come: every instant up to `decided_until` has its run,
-- or was decided to have none.
create table schedules (
    tenant        integer          not null,
    workflow      text collate "C" not null,
    name          text collate "C" not null,
    definition    json             not null,
    decided_until timestamptz      not null,
    -- What a person has said of the instants missed until then.
    owed          text,
    owed_until    timestamptz,
    -- When the sweep should look; null while it rests, and when nothing is to come.
    look_at       timestamptz,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    -- Why its last instant has no run, where it should have one.
    problem       text,
    last_date     timestamptz,
    -- How many runs began how late.
    drift         bigint[]         not null,
    revision      integer          not null,
    primary key (tenant, workflow, name),
    constraint a_schedule_belongs_to_a_workflow foreign key (tenant, workflow) references workflows,
    constraint a_schedule_has_a_name check (name <> ''),
    constraint what_is_owed_is_known check (owed in ('all', 'latest', 'none')),
    constraint what_is_owed_has_an_end check ((owed is null) = (owed_until is null)),
    constraint whoever_pauses_is_known check ((paused_at is null) = (paused_by is null)),
    constraint a_paused_schedule_is_not_looked_at check (paused_at is null or look_at is null),
    constraint a_schedule_counts_from_zero check (revision >= 0 and 0 <= all (drift))
) with (fillfactor = 70);

create index schedules_by_time on schedules (look_at) where look_at is not null;

-- Schedules that are in use already begin now.
insert into schedules (tenant, workflow, name, definition, decided_until, look_at, drift, revision)
select workflows.tenant, workflows.name, 'default', versions.definition -> 'schedule', now(), now(), '{}', 0
  from workflows join versions on versions.id = workflows.active_version
 where not workflows.archived and json_typeof(versions.definition -> 'schedule') = 'object';
