-- Roles, which belong to the server: databases on one server share them. The migrating user needs CREATEROLE the first time, and
-- no more than membership afterwards. Applied before the schema, by that user; the schema is then applied as `ebbflow_owner`.

do $$
declare
    may_assume constant text :=
        case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
    name text;
begin
    -- `ebbflow_owner` owns every table, whichever user creates it. Nobody logs in as it: users are members and assume it, so a
    -- partition made by one of them can be altered by another. `ebbflow_tenant` reads the rows of one tenant.
    foreach name in array array['ebbflow_owner', 'ebbflow_tenant'] loop
        if not exists (select from pg_roles where rolname = name) then
            begin
                execute format('create role %I nologin', name);
            exception
                -- The migration of another database was faster.
                when duplicate_object or unique_violation then null;
            end;
        end if;
    end loop;
    begin
        if not pg_has_role('ebbflow_owner', 'ebbflow_tenant', may_assume) then
            grant ebbflow_tenant to ebbflow_owner;
        end if;
        -- From Postgres 16 on, a user administers the roles that it creates and may not yet assume them.
        if not pg_has_role(current_user, 'ebbflow_owner', may_assume) then
            execute format('grant ebbflow_owner to %I', current_user);
        end if;
    exception
        when unique_violation then null;
    end;
    begin
        -- So that the doctor finds old transactions of every user.
        if not pg_has_role('ebbflow_owner', 'pg_read_all_stats', 'member') then
            grant pg_read_all_stats to ebbflow_owner;
        end if;
    exception
        -- From Postgres 16 on, the provider's users may lack the right to grant it.
        when insufficient_privilege or unique_violation then null;
    end;
    if not has_schema_privilege('ebbflow_owner', current_schema(), 'create') then
        execute format('grant usage, create on schema %I to ebbflow_owner', current_schema());
    end if;
    if not has_schema_privilege('ebbflow_tenant', current_schema(), 'usage') then
        execute format('grant usage on schema %I to ebbflow_tenant', current_schema());
    end if;
end $$;
