-- Runs found by a label, and in the order in which they ended.

-- A row for each label of a run, as `name=value`; one that is too long for an index keeps its beginning and a hash of all
-- of it. There is no foreign key: what is running already forgets runs without knowing of it.
create table run_labels (
    tenant     integer          not null,
    label      text collate "C" not null,
    created_at timestamptz      not null,
    run        uuid             not null,
    primary key (tenant, label, created_at, run)
);

create index run_labels_of_runs on run_labels (run);

grant select on run_labels to ebbflow_tenant;
alter table run_labels enable row level security;
create policy of_one_tenant on run_labels to ebbflow_tenant using (tenant is not distinct from (select the_tenant()));

-- Runs that are there already. What holds a NUL, or is too long, is found by other means.
insert into run_labels (tenant, label, created_at, run)
select runs.tenant, pair.key || '=' || pair.value, runs.created_at, runs.id
  from (select run, labels from run_facts
         where labels::text not in ('{}', '{ }') and labels::text not like '%\\u0000%' offset 0) as labelled
  join runs on runs.id = labelled.run
 cross join lateral json_each_text(labelled.labels) as pair
 where pair.value is not null and char_length(pair.key || '=' || pair.value) <= 256
    on conflict do nothing;

create index runs_by_end on runs (tenant, finished_at desc, id desc) where finished_at is not null;
