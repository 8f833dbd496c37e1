-- Workers that say who they are, are told to end, and hand back what they cannot finish.

-- Facts come with a worker's own beat; one that another version or a message made known may have none. What it is told
-- to do stands in its row: it learns of it when it next says that it lives.
alter table workers
    add column function       text,
    add column queue          text,
    add column host           text,
    add column version        text,
    add column since          timestamptz,
    add column ordered        text,
    add column ordered_by     text,
    add column ordered_reason text,
    add column ordered_at     timestamptz,
    add constraint a_worker_is_told_to_drain_or_die check (ordered in ('drain', 'kill')),
    add constraint an_order_says_who_and_when check (num_nulls(ordered, ordered_by, ordered_at) in (0, 3));

-- Attempts that were handed back use up no retry, but keep their numbers.
alter table tasks
    add column handed_back integer not null default 0,
    add constraint only_attempts_are_handed_back check (handed_back between 0 and attempt);
