-- Waiting for what people and programs say.

-- A signal that came before any task waited for it. The first task that does takes it; of two by one name, the later
-- stands.
create table signals (
    run     uuid not null references runs,
    name    text not null,
    payload json not null,
    primary key (run, name),
    constraint a_signal_has_a_name check (name <> '')
);

-- Who waits does so for a while.
alter table timers drop constraint a_timer_is_of_a_known_kind;
alter table timers add constraint a_timer_is_of_a_known_kind check (kind in ('retry', 'sleep', 'timeout'));
