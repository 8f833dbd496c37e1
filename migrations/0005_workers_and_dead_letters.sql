-- Who executes, and what could not be taken in.

-- A worker is there from its first sign of life to its farewell.
create table workers (
    id       uuid        not null primary key,
    heard_at timestamptz not null
) with (fillfactor = 50);

-- Messages that can never succeed, with the reason, as they came.
create table dead_letters (
    id     text collate "C" not null primary key,
    source text             not null,
    reason text             not null,
    body   text             not null,
    at     timestamptz      not null
);

create index dead_letters_by_age on dead_letters (at desc, id desc);
