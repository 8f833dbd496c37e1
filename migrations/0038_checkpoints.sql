-- How far the attempts at a task have come, as a worker elsewhere told: the next attempt begins with it. There is no
-- foreign key: what is running already forgets runs without knowing of it.
create table checkpoints (
    run     uuid        not null,
    idx     integer     not null,
    attempt integer     not null,
    at      timestamptz not null,
    data    json        not null,
    primary key (run, idx),
    constraint a_checkpoint_counts_from_one check (idx >= 0 and attempt >= 1)
);
