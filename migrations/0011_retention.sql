-- Runs that have not ended, in id order: what an inspection walks through. Steps of a run touch none of its columns.
create index unfinished_runs on runs (id) where finished_at is null;
