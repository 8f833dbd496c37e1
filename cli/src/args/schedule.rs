//! Schedules and backfills.

use clap::{Args, Subcommand};
use model::BackfillId;

/// What to do with schedules.
#[derive(Subcommand, Clone, Debug)]
pub enum Schedule {
    /// Show the next instants of a workflow or, without a server, of a pattern
    #[command(
        after_help = "Examples:\n  ebb schedule next etl\n  ebb schedule next --cron '30 2 * * *' --timezone America/New_York --from 2026-03-07 --count 3 --json\n\nWith --json, it prints a list of instants in UTC."
    )]
    Next(NextInstants),
    /// List schedules with their next instants
    List {
        /// Only those of this workflow
        workflow: Option<String>,
    },
    /// Show how late the last runs started
    #[command(
        after_help = "The delay is the time from the scheduled instant until the run started: it was created, and no limit on runs\nheld it back. Time that its tasks wait for slots is not included, and catch-up runs do not count."
    )]
    Drift {
        /// Name of the workflow
        workflow: String,
        /// Number of runs to show
        #[arg(long, default_value_t = api::drift::DEFAULT_RUNS, value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: u32,
    },
    /// Pause a schedule: it creates no runs until it is resumed
    Pause(PauseSchedule),
    /// Resume a schedule, with runs for all, the latest or none of the instants it missed
    #[command(
        after_help = "Examples:\n  ebb schedule resume etl --dry-run\n  ebb schedule resume etl --missed latest\n\nOnce a sweep has run, `catchup` has decided; use `ebb backfill NAME --from … --to …` for what it skipped."
    )]
    Resume(ResumeSchedule),
}

/// Whose instants to show, and which.
#[derive(Args, Clone, Debug)]
pub struct NextInstants {
    /// Name of the workflow
    #[arg(required_unless_present = "cron", conflicts_with_all = ["cron", "timezone"])]
    pub name: Option<String>,
    /// Cron pattern, instead of a workflow
    #[arg(long, value_name = "EXPR")]
    pub cron: Option<String>,
    /// Time zone of the pattern [default: UTC]
    #[arg(long, value_name = "TZ")]
    pub timezone: Option<String>,
    /// Time to start after, in the schedule's time zone unless it has an offset [default: now]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Number of instants to show
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
}

/// The schedule to pause.
#[derive(Args, Clone, Debug)]
pub struct PauseSchedule {
    /// Name of the workflow
    pub workflow: String,
    /// Name of the schedule [default: all of them]
    pub name: Option<String>,
    /// Reason, shown with the schedule
    #[arg(long)]
    pub reason: Option<String>,
}

/// The schedule to resume.
#[derive(Args, Clone, Debug)]
pub struct ResumeSchedule {
    /// Name of the workflow
    pub workflow: String,
    /// Name of the schedule [default: all of them]
    pub name: Option<String>,
    /// Missed instants that get a run [default: its `catchup`]
    #[arg(long, value_parser = ["all", "latest", "none"])]
    pub missed: Option<String>,
    /// Show what it missed and what each choice would do, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What to backfill, or what to do with a backfill.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Backfill {
    /// What to do with existing backfills
    #[command(subcommand)]
    pub action: Option<BackfillAction>,
    /// The backfill to start
    #[command(flatten)]
    pub new: Option<NewBackfill>,
}

/// What to do with existing backfills.
#[derive(Subcommand, Clone, Debug)]
pub enum BackfillAction {
    /// List backfills, newest first
    List {
        /// Only those of this workflow
        #[arg(long)]
        workflow: Option<String>,
    },
    /// Show the progress of a backfill
    Show {
        /// Id of the backfill
        id: BackfillId,
    },
    /// Pause a backfill: it starts no more runs; active runs continue
    Pause {
        /// Id of the backfill
        id: BackfillId,
    },
    /// Resume a backfill; runs that were cancelled with it are re-run
    Resume {
        /// Id of the backfill
        id: BackfillId,
    },
    /// Cancel a backfill and its runs
    Cancel {
        /// Id of the backfill
        id: BackfillId,
    },
}

/// The backfill to start.
#[derive(Args, Clone, Debug)]
pub struct NewBackfill {
    /// Name of the workflow
    pub name: String,
    /// First date: 2026-01-31 or 2026-01-31T06:00:00Z
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// Last date, inclusive, in the same form
    #[arg(long, value_name = "TIME")]
    pub to: String,
    /// Maximum number of active runs
    #[arg(long, default_value_t = api::backfills::DEFAULT_PARALLEL, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_parallel: u32,
    /// Number of its tasks that start for every ten of live runs while slots are scarce
    #[arg(long, default_value_t = api::backfills::DEFAULT_WEIGHT, value_parser = clap::value_parser!(u32).range(1..=9))]
    pub weight: u32,
    /// Show what it would do, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Dates that get a run: those without one, those whose run failed, or all
    #[arg(long, default_value = "missing", value_parser = ["missing", "failed", "all"])]
    pub rerun: String,
    /// Version that the runs use [default: the active one]
    #[arg(long, value_name = "V", value_parser = super::version)]
    pub version: Option<i32>,
    /// Name of the schedule, if the workflow has several
    #[arg(long, value_name = "NAME")]
    pub schedule: Option<String>,
}
