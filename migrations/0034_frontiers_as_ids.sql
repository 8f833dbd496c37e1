-- A line's frontier to the id, not only its block: whoever comes late does not get a turn in a round whose turns of its
-- own are over. `frontier` is left to the releases before this one, and goes with them.
alter table limits
    add column frontier_id bigint not null default 0,
    add constraint a_frontier_counts_from_zero check (frontier_id >= 0);

update limits set frontier_id = frontier * 1048576;

-- The last of a party in a line, who takes the turn of one that leaves.
create index line_ends on line (lim, tenant, backfill, id, rank, run, idx) where granted_at is null;
