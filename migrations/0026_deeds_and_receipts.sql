-- The audit log: what was asked to be changed through the API, by whom, from where, and what became of it. A row is never
-- changed, and only deleted once it has been kept long enough.
create table deeds (
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
    constraint a_deed_was_answered check (status between 100 and 599)
);

create index deeds_of_tenants on deeds (tenant, id);
create index deeds_of_actors on deeds (tenant, actor, id);
create index deeds_by_age on deeds (at);

create function refuse_to_rewrite_deeds() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('ebbflow.retention', true) = 'on' then
        return old;
    end if;
    raise exception 'the audit log is only ever added to';
end
$$;

create trigger deeds_are_only_added before update or delete on deeds
    for each row execute function refuse_to_rewrite_deeds();
create trigger deeds_are_not_truncated before truncate on deeds
    for each statement execute function refuse_to_rewrite_deeds();

-- Requests that came with an idempotency key: which one it was, and how it was answered, once it was.
create table receipts (
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

create index receipts_by_age on receipts (taken_at);
