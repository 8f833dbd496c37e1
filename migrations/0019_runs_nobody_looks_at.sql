-- Finding runs that the sweep was never told to look at, also while nothing else is due.

-- Runs that have not ended and that nobody is to look at: those that only wait, and those that got lost. Steps of a run
-- touch none of its columns.
create index runs_nobody_looks_at on runs (id) where finished_at is null and checkup_at is null;
