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
