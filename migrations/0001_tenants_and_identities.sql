-- Tenants, their people and programs, and the requests that they made.

-- A tenant's number is also its group in the fair wait queues.
create table tenants (
    id         integer     not null primary key,
    name       text        not null unique,
    created_at timestamptz not null,
    -- The number of turns of the tenant in each round of a wait queue.
    weight     integer     not null default 1,
    constraint a_tenant_has_a_positive_number check (id > 0),
    -- The name is a folder's name for its secrets, and part of a variable's.
    constraint a_tenant_has_a_name check (name ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(name) <= 63),
    constraint a_weight_is_a_small_number check (weight between 1 and 1000),
    -- Ids in a wait queue are a tenant's number plus whole blocks of this size.
    constraint there_are_fewer_tenants_than_a_block_has_ids check (id < 1048576)
);

insert into tenants (id, name, created_at) values (1, 'default', 'epoch');

-- Only the hash of a token is stored: a reader of this table gets no usable token.
create table service_tokens (
    id         uuid        not null primary key,
    hash       bytea       not null,
    name       text        not null,
    -- Null for every tenant.
    tenant     integer     references tenants,
    role       text        not null,
    -- A pattern for workflow names, where * matches any characters.
    workflows  text        not null,
    created_at timestamptz not null,
    created_by text        not null,
    expires_at timestamptz not null,
    revoked_at timestamptz,
    revoked_by text,
    constraint a_hash_names_one_token unique (hash),
    constraint a_hash_has_256_bits check (length(hash) = 32),
    constraint a_token_has_a_name check (name <> ''),
    constraint a_token_expires_after_it_was_made check (expires_at > created_at),
    constraint a_revoked_token_has_an_actor check ((revoked_at is null) = (revoked_by is null))
);

create index service_tokens_of_a_tenant on service_tokens (tenant, id);

-- A role granted to an address, a @domain or a group:NAME.
create table grants (
    id         uuid             not null primary key,
    who        text collate "C" not null,
    -- Null for every tenant.
    tenant     integer          references tenants,
    role       text             not null,
    workflows  text             not null,
    created_at timestamptz      not null,
    created_by text             not null,
    constraint a_grant_is_given_once unique nulls not distinct (who, tenant, role, workflows),
    constraint a_grant_is_for_somebody check (who <> '')
);

create index grants_of_a_tenant on grants (tenant, id);

-- Sessions that ended before they expired. Only the hash of each is stored, until it would have expired.
create table ended_sessions (
    hash  bytea       not null primary key,
    until timestamptz not null,
    constraint the_hash_of_a_session_has_256_bits check (length(hash) = 32)
);

create index ended_sessions_by_time on ended_sessions (until);

-- The audit log: each change requested through the API, by whom, from where, and the outcome. A row never changes, and
-- is deleted only by retention.
create table audit_entries (
    id        bigint      not null generated always as identity primary key,
    tenant    integer     not null,
    at        timestamptz not null,
    actor     text        not null,
    origin    text,
    forwarded text,
    agent     text,
    action    text        not null,
    target    text        not null,
    key       text,
    status    integer     not null,
    before    json,
    after     json,
    constraint an_audit_entry_has_a_status check (status between 100 and 599)
);

create index audit_entries_of_tenants on audit_entries (tenant, id);
create index audit_entries_of_actors on audit_entries (tenant, actor, id);
create index audit_entries_by_age on audit_entries (at);

create function refuse_to_rewrite_audit_entries() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('ebbflow.retention', true) = 'on' then
        return old;
    end if;
    raise exception 'the audit log is only ever added to';
end
$$;

create trigger audit_entries_are_only_added before update or delete on audit_entries
    for each row execute function refuse_to_rewrite_audit_entries();
create trigger audit_entries_are_not_truncated before truncate on audit_entries
    for each statement execute function refuse_to_rewrite_audit_entries();

-- Requests with an idempotency key: a fingerprint of the request, and its response once there is one.
create table idempotency_records (
    tenant      integer     not null,
    actor       text        not null,
    key         text        not null,
    fingerprint text        not null,
    taken_at    timestamptz not null,
    status      integer,
    headers     json,
    body        bytea,
    primary key (tenant, actor, key),
    constraint an_answer_is_whole check ((status is null) = (body is null) and (status is null) = (headers is null))
);

create index idempotency_records_by_age on idempotency_records (taken_at);

-- What the instances of a function log, in the syntax of RUST_LOG, until the configured filter applies again.
create table log_filters (
    function text        not null primary key,
    filter   text        not null,
    until    timestamptz not null,
    set_by   text        not null,
    constraint a_log_filter_has_a_function check (function <> '')
);
