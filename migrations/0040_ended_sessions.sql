-- Sessions that were ended before their time. Of each only the hash is kept, until it would have ended by itself.
create table ended_sessions (
    hash  bytea       not null primary key,
    until timestamptz not null,
    constraint the_hash_of_a_session_has_256_bits check (length(hash) = 32)
);

create index ended_sessions_by_time on ended_sessions (until);
