-- Tokens of our own, and who may do what.

-- Of a token only the hash is kept: whoever reads this table can use none of them.
create table service_tokens (
    id         uuid        not null primary key,
    hash       bytea       not null,
    name       text        not null,
    -- Null for every tenant.
    tenant     integer     references tenants,
    role       text        not null,
    -- Names of workflows, where * stands for any characters.
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
    constraint who_revoked_a_token_is_known check ((revoked_at is null) = (revoked_by is null))
);

create index service_tokens_of_a_tenant on service_tokens (tenant, id);

-- A role that somebody was given: an address, a @domain or a group:NAME.
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
