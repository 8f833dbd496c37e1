-- What people have done anew.

-- The last attempt before a task was cleared; 0 if it never was. Attempts up to it deliver nothing any more.
alter table tasks
    add column voided integer not null default 0,
    add constraint only_attempts_that_were_made_are_void check (voided >= 0 and voided <= attempt);
