-- Keeping the database healthy: what is looked through for what should not be, and what has been kept long enough.

-- Runs that have not ended, in id order: what an inspection walks through. Steps of a run touch none of its columns.
create index unfinished_runs on runs (id) where finished_at is null;

-- Runs in the order of their ends, which is the order in which they are forgotten.
create index ended_runs on runs (state, finished_at, id) where finished_at is not null;

-- Whose turn it is: no sweep looks for what has been kept long enough before that instant. One row.
create table retention_turn (
    next_at timestamptz not null,
    single  boolean     not null primary key default true,
    constraint there_is_one_turn check (single)
);

insert into retention_turn (next_at) values ('epoch');

-- Up to which run, in the order of their ends, a part was deleted of those that ended in a state.
create table retention (
    part        text        not null,
    state       text        not null,
    finished_at timestamptz not null,
    run         uuid        not null,
    primary key (part, state),
    constraint a_part_of_a_run_is_known check (part in ('outputs', 'logs'))
);

-- Events and logs are the bulk of what is written, and are dropped by the table once they are old. A row lies where its
-- run was created, so that all rows of a run lie together and are found in one place. Whatever comes before its
-- partition was made lies in the one for all others.
alter table events rename to events_whole;
alter table events_whole rename constraint events_pkey to events_whole_pkey;

create table events (
    run    uuid        not null,
    run_at timestamptz not null,
    seq    bigint      not null,
    count  integer     not null,
    events json        not null,
    primary key (run, seq, run_at),
    constraint events_are_numbered_from_zero check (seq >= 0),
    constraint a_row_holds_the_events_it_counts check (count >= 1 and json_array_length(events) = count)
) partition by range (run_at);

create table events_other partition of events default;

insert into events (run, run_at, seq, count, events)
select runs.id, runs.created_at, seq, count, events_whole.events
  from events_whole join runs on runs.id = events_whole.run;

drop table events_whole;

alter table logs rename to logs_whole;
alter table logs_whole rename constraint logs_pkey to logs_whole_pkey;

create table logs (
    run     uuid        not null,
    run_at  timestamptz not null,
    idx     integer     not null,
    attempt integer     not null,
    first   integer     not null,
    count   integer     not null,
    lines   json        not null,
    primary key (run, idx, attempt, first, run_at),
    constraint lines_are_numbered_from_zero check (idx >= 0 and attempt >= 0 and first >= 0),
    constraint a_chunk_holds_the_lines_it_counts check (count >= 1 and json_array_length(lines) = count)
) partition by range (run_at);

create table logs_other partition of logs default;

insert into logs (run, run_at, idx, attempt, first, count, lines)
select runs.id, runs.created_at, idx, attempt, first, count, lines
  from logs_whole join runs on runs.id = logs_whole.run;

drop table logs_whole;
