-- How the database is: what it is, what time it has, how full and how busy it is, and what it does not let us do. Of sessions of
-- other users, the type and the transaction are null unless the owner may read them.
select current_setting('server_version_num')::int as version,
       (select max(version) from _sqlx_migrations where success) as migrated,
       clock_timestamp() as clock,
       (select count(*)::int from pg_stat_activity
         where datid is not null and coalesce(backend_type, 'client backend') = 'client backend') as connections,
       current_setting('max_connections')::int as max_connections,
       (select min(xact_start) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')
           as oldest_transaction,
       array(select relname::text from pg_class
              where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
                and not has_table_privilege(oid, 'select, insert, update, delete')
              order by relname) as forbidden
