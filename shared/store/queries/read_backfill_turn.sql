-- What a backfill could do next, all as of one moment: how many of its runs are active, and the first dates that wait or
-- were claimed and not begun. A claimed date counts as an active run.
with active as (
    select count(*)::integer as active,
           coalesce(bool_or(dates.redo), false) as redoing
      from backfill_dates as dates left join runs on runs.id = dates.run
     where dates.backfill = $1
       and (dates.state = 'claimed' or dates.state = 'begun' and runs.id is not null and runs.finished_at is null)
),
next as (
    (select date, interval_start, state as step, run, redo from backfill_dates
      where backfill = $1 and state = 'waiting' order by date limit $2)
    union all
    (select date, interval_start, state as step, run, redo from backfill_dates
      where backfill = $1 and state = 'claimed' order by date limit $2)
)
select active.active, active.redoing, next.date, next.interval_start, next.step, next.run, next.redo
  from active left join next on true
 order by next.date
