-- What is written once and never read by a step of a run. These tables have no foreign keys: their rows are
-- written under the run's lock or after the fact, and old ones are to be dropped by the table.

-- A task succeeds once, so a second output of it is a defect and refused.
create table outputs (
    run    uuid    not null,
    idx    integer not null,
    output json    not null,
    primary key (run, idx),
    constraint an_output_belongs_to_a_task check (idx >= 0)
);

-- Attempts that are over; the one in hand is in the task's own row.
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
    primary key (run, idx, attempt),
    constraint an_attempt_that_is_over_ended check (state in ('succeeded', 'failed', 'cancelled')),
    constraint attempts_are_numbered_from_one check (idx >= 0 and attempt >= 1),
    constraint an_attempt_finishes_after_it_started check (finished_at >= started_at)
);

-- One row per run and write: `seq` is the number of its first event, the others follow.
create table events (
    run    uuid    not null,
    seq    bigint  not null,
    count  integer not null,
    events json    not null,
    primary key (run, seq),
    constraint events_are_numbered_from_zero check (seq >= 0),
    constraint a_row_holds_the_events_it_counts check (count >= 1 and json_array_length(events) = count)
);

-- One row per chunk of lines: `first` is the number of its first line, the others follow.
create table logs (
    run     uuid    not null,
    idx     integer not null,
    attempt integer not null,
    first   integer not null,
    count   integer not null,
    lines   json    not null,
    primary key (run, idx, attempt, first),
    constraint lines_are_numbered_from_zero check (idx >= 0 and attempt >= 0 and first >= 0),
    constraint a_chunk_holds_the_lines_it_counts check (count >= 1 and json_array_length(lines) = count)
);
