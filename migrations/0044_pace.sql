-- How fast a line moves: the minute (since 1970) in which a party was last given a place from it, how many it was given in
-- that minute, and how many in the one before.
alter table standings
    add column pace int[] not null default '{0,0,0}',
    add constraint a_pace_is_a_minute_and_two_counts check (cardinality(pace) = 3 and 0 <= all (pace));
alter table backfill_standings
    add column pace int[] not null default '{0,0,0}',
    add constraint a_pace_is_a_minute_and_two_counts check (cardinality(pace) = 3 and 0 <= all (pace));
