-- The runs that the tasks of a run started, newest first. What started a run never changes, so steps touch no new
-- index.
create index runs_by_parent on runs (parent_run, created_at desc, id desc) where parent_run is not null;
