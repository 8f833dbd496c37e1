-- Whoever listens is told what happens to any run. Histories are kept by run, so what is new in all of them is found by
-- the transaction that wrote it. Rows of before have none: nobody is told of them again.
alter table events add column tx xid8;
alter table events alter column tx set default pg_current_xact_id();

create index news on events (tx) where tx is not null;
