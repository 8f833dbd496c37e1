-- Timers and messages. Rows are short-lived, so autovacuum runs often.

-- A timer is fenced by the attempt that set it. A task may have timers of several kinds, and a run has its
-- own, with an index of -1: `task`, which is null for these, has the foreign key.
create table timers (
    run     uuid        not null,
    idx     integer     not null,
    attempt integer     not null,
    kind    text        not null,
    wake_at timestamptz not null,
    task    integer     generated always as (nullif(idx, -1)) stored,
    primary key (run, idx, kind),
    constraint a_timer_belongs_to_a_run foreign key (run) references runs,
    constraint a_timer_belongs_to_a_task foreign key (run, task) references tasks,
    constraint a_timer_is_of_a_known_kind check (kind in ('retry', 'sleep', 'timeout', 'deadline')),
    constraint a_timer_is_set_by_an_attempt check (attempt >= 0),
    constraint a_run_has_no_attempts check (idx >= 0 or attempt = 0),
    constraint a_run_neither_retries_nor_sleeps check (idx >= 0 or kind in ('timeout', 'deadline')),
    constraint only_a_run_has_a_deadline check (idx = -1 or kind <> 'deadline')
) with (autovacuum_vacuum_scale_factor = 0.02);

create index timers_by_time on timers (wake_at);

-- Committed messages that are not published yet. A row is deleted once it is published.
create table outbox (
    id         bigint      not null generated always as identity primary key,
    created_at timestamptz not null,
    kind       text        not null,
    body       json        not null,
    constraint a_message_has_a_kind check (kind <> '')
) with (autovacuum_vacuum_scale_factor = 0.02);

-- Messages that can never succeed, unchanged, with the reason.
create table dead_letters (
    id     text collate "C" not null primary key,
    source text             not null,
    reason text             not null,
    body   text             not null,
    at     timestamptz      not null
);

create index dead_letters_by_age on dead_letters (at desc, id desc);
