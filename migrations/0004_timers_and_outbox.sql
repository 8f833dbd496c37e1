-- What must happen later. Rows are short-lived: vacuum is asked to come early.

-- At T, do this. A task has at most one timer; it is fenced by the attempt that set it.
create table timers (
    run     uuid        not null,
    idx     integer     not null,
    attempt integer     not null,
    kind    text        not null,
    wake_at timestamptz not null,
    primary key (run, idx),
    constraint a_timer_belongs_to_a_task foreign key (run, idx) references tasks,
    constraint a_timer_is_of_a_known_kind check (kind in ('retry', 'sleep')),
    constraint a_timer_is_set_by_an_attempt check (attempt >= 0)
) with (autovacuum_vacuum_scale_factor = 0.02);

create index timers_by_time on timers (wake_at);

-- Messages that must go out since what they say was committed. A row is gone once it was published.
create table outbox (
    id         bigint      not null generated always as identity primary key,
    created_at timestamptz not null,
    kind       text        not null,
    body       json        not null,
    constraint a_message_has_a_kind check (kind <> '')
) with (autovacuum_vacuum_scale_factor = 0.02);
