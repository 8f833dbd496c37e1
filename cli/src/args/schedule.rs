//! Schedules and backfills.

use clap::{Args, Subcommand};
use model::BackfillId;

/// What to do with schedules.
#[derive(Subcommand, Clone, Debug)]
pub enum Schedule {
    /// Show the next instants of a workflow, or of a pattern without a server
    #[command(
        after_help = "Examples:\n  ebb schedule next etl\n  ebb schedule next --cron '30 2 * * *' --timezone America/New_York --from 2026-03-07 --count 3 --json\n\nIn JSON it is a list of instants in UTC."
    )]
    Next(NextInstants),
    /// List schedules with what is due next
    List {
        /// Only of this workflow
        workflow: Option<String>,
    },
    /// Show how late the last runs began
    #[command(
        after_help = "Late is the time from the planned instant until the run was begun: it was made, and no limit on runs\nheld it back. What its tasks then wait for a place is not in it, and runs that make up for missed instants do not count."
    )]
    Drift {
        /// The workflow's name
        workflow: String,
        /// Of so many of the last runs
        #[arg(long, default_value_t = api::drift::RUNS, value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: u32,
    },
    /// Make no runs until it is resumed
    Pause(PauseSchedule),
    /// Let it go on, with all, the latest or none of what it missed while it was paused or no sweep was up
    #[command(
        after_help = "Examples:\n  ebb schedule resume etl --dry-run\n  ebb schedule resume etl --missed latest\n\nOnce a sweep is back, it has decided by `catchup`: `ebb backfill NAME --from … --to …` makes runs of what was skipped."
    )]
    Resume(ResumeSchedule),
}

/// Whose instants to show, and which.
#[derive(Args, Clone, Debug)]
pub struct NextInstants {
    /// The workflow's name
    #[arg(required_unless_present = "cron", conflicts_with_all = ["cron", "timezone"])]
    pub name: Option<String>,
    /// A cron pattern
    #[arg(long, value_name = "EXPR")]
    pub cron: Option<String>,
    /// The time zone of the pattern [default: UTC]
    #[arg(long, value_name = "TZ")]
    pub timezone: Option<String>,
    /// Those after this time, in the schedule's time zone unless it says otherwise [default: now]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// So many
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
}

/// What to pause.
#[derive(Args, Clone, Debug)]
pub struct PauseSchedule {
    /// The workflow's name
    pub workflow: String,
    /// The schedule's name [default: all of them]
    pub name: Option<String>,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
}

/// What to resume.
#[derive(Args, Clone, Debug)]
pub struct ResumeSchedule {
    /// The workflow's name
    pub workflow: String,
    /// The schedule's name [default: all of them]
    pub name: Option<String>,
    /// Which of the instants it missed get their runs [default: as its `catchup` says]
    #[arg(long, value_parser = ["all", "latest", "none"])]
    pub missed: Option<String>,
    /// Say what it missed and what each choice would make, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What to backfill, or what to do with a backfill.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Backfill {
    /// What to do with those that are there
    #[command(subcommand)]
    pub action: Option<BackfillAction>,
    /// What to begin
    #[command(flatten)]
    pub new: Option<NewBackfill>,
}

/// What to do with backfills that are there.
#[derive(Subcommand, Clone, Debug)]
pub enum BackfillAction {
    /// List backfills, newest first
    List {
        /// Only of this workflow
        #[arg(long)]
        workflow: Option<String>,
    },
    /// Show how far a backfill is
    Show {
        /// The backfill
        id: BackfillId,
    },
    /// Begin no more of its runs; those under way go on
    Pause {
        /// The backfill
        id: BackfillId,
    },
    /// Let it go on; what was cancelled with it is done anew
    Resume {
        /// The backfill
        id: BackfillId,
    },
    /// End it, and its runs
    Cancel {
        /// The backfill
        id: BackfillId,
    },
}

/// What to backfill.
#[derive(Args, Clone, Debug)]
pub struct NewBackfill {
    /// The workflow's name
    pub name: String,
    /// From when on: 2026-01-31 or 2026-01-31T06:00:00Z
    #[arg(long, value_name = "TIME")]
    pub from: String,
    /// Until when, that included
    #[arg(long, value_name = "TIME")]
    pub to: String,
    /// So many runs go on at the same time
    #[arg(long, default_value_t = api::backfills::PARALLEL, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_parallel: u32,
    /// Where places are short, so many of its tasks begin for ten of live runs
    #[arg(long, default_value_t = api::backfills::WEIGHT, value_parser = clap::value_parser!(u32).range(1..=9))]
    pub weight: u32,
    /// Say what it would do, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Which dates get a run: those that have none, those whose run failed, or all
    #[arg(long, default_value = "missing", value_parser = ["missing", "failed", "all"])]
    pub rerun: String,
    /// The version that the runs take [default: the active one]
    #[arg(long, value_name = "V", value_parser = super::version)]
    pub version: Option<i32>,
    /// Whose dates, where the workflow has several schedules
    #[arg(long, value_name = "NAME")]
    pub schedule: Option<String>,
}
