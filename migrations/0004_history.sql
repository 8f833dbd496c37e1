-- Rows that are written once and never read by a step of a run. These tables have no foreign keys: their rows are written
-- under the run's lock or later, and old ones are dropped with their partition.

-- A task succeeds once, so a second output of it is a bug and rejected.
create table outputs (
    run    uuid    not null,
    idx    integer not null,
    output json    not null,
    primary key (run, idx),
    constraint an_output_belongs_to_a_task check (idx >= 0)
);

-- Attempts that are over; the current one is in the task's own row.
create table attempts (
    run         uuid        not null,
    idx         integer     not null,
    attempt     integer     not null,
    state       text        not null,
    worker      uuid,
    started_at  timestamptz,
    finished_at timestamptz not null,
    failure     json,
    decision    text        not null,
    -- When the next attempt may begin, if one follows.
    next_attempt_at timestamptz,
    primary key (run, idx, attempt),
    constraint an_attempt_that_is_over_ended check (state in ('succeeded', 'failed', 'cancelled')),
    constraint attempts_are_numbered_from_one check (idx >= 0 and attempt >= 1),
    constraint an_attempt_finishes_after_it_started check (finished_at >= started_at)
);

-- Events and logs are most of what is written, and old ones are dropped with their partition. The creation time of the run
-- determines the partition, so that all rows of a run are in one. Rows without a partition go to the default one.

-- One row per run and write: `seq` is the number of its first event, the others follow.
create table events (
    run    uuid        not null,
    run_at timestamptz not null,
    seq    bigint      not null,
    count  integer     not null,
    events json        not null,
    -- Events are stored by run; the change feed finds new ones by the transaction that wrote them.
    tx     xid8        default pg_current_xact_id(),
    primary key (run, seq, run_at),
    constraint events_are_numbered_from_zero check (seq >= 0),
    constraint a_row_holds_the_events_it_counts check (count >= 1 and json_array_length(events) = count)
) partition by range (run_at);

create table events_other partition of events default;

create index change_feed on events (tx) where tx is not null;

-- One row per chunk of lines: `first` is the number of its first line, the others follow. `bytes` is the size of the log with
-- this chunk, which limits it.
create table logs (
    run     uuid        not null,
    run_at  timestamptz not null,
    idx     integer     not null,
    attempt integer     not null,
    first   integer     not null,
    count   integer     not null,
    lines   json        not null,
    bytes   bigint      not null,
    primary key (run, idx, attempt, first, run_at),
    constraint lines_are_numbered_from_zero check (idx >= 0 and attempt >= 0 and first >= 0),
    constraint a_chunk_holds_the_lines_it_counts check (count >= 1 and json_array_length(lines) = count)
) partition by range (run_at);

create table logs_other partition of logs default;

-- No sweep starts a retention pass before `next_at`. One row.
create table retention_pass (
    next_at timestamptz not null,
    single  boolean     not null primary key default true,
    constraint there_is_one_pass check (single)
);

insert into retention_pass (next_at) values ('epoch');

-- For each part and final state, the last run whose part was deleted, in the order in which runs ended.
create table retention (
    part        text        not null,
    state       text        not null,
    finished_at timestamptz not null,
    run         uuid        not null,
    primary key (part, state),
    constraint a_part_of_a_run_is_known check (part in ('outputs', 'logs'))
);
