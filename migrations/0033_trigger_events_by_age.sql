-- What triggers heard of, the oldest first: also of triggers that are there no more, somebody has to forget it.
create index trigger_events_by_age on trigger_events (at);
