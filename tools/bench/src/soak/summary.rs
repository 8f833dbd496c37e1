//! The result of a soak: what was lost, and which curves are not flat.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::chart;
use super::mix::Counts;
use super::sample::Sample;
use crate::database::Ended;

/// A curve that should be flat: its last quarter is compared with its second one, after warming up.
pub(super) struct Curve {
    pub(super) title: &'static str,
    pub(super) value: fn(&Sample) -> f64,
    /// How much it may grow: by a share, or by an amount if that is more.
    share: f64,
    amount: f64,
}

/// The curves that are drawn and judged.
pub(super) const CURVES: [Curve; 8] = [
    Curve { title: "runs in progress", value: |it| it.in_progress as f64, share: 0.2, amount: 10.0 },
    Curve { title: "memory of all processes, MB", value: |it| it.memory_mb, share: 0.05, amount: 10.0 },
    Curve { title: "database connections", value: |it| it.connections as f64, share: 0.1, amount: 5.0 },
    Curve {
        title: "idle in transaction",
        value: |it| it.idle_in_transaction as f64,
        share: 0.0,
        amount: 1.0,
    },
    Curve { title: "dead rows, %", value: |it| it.dead_percent, share: 0.5, amount: 5.0 },
    Curve { title: "trigger accepted, p50 ms", value: |it| it.trigger_p50_ms, share: 0.5, amount: 10.0 },
    Curve { title: "trigger accepted, p99 ms", value: |it| it.trigger_p99_ms, share: 0.5, amount: 100.0 },
    Curve { title: "run with a sleep of 2 s, p50 ms", value: |it| it.run_p50_ms, share: 0.25, amount: 300.0 },
];

/// The share of the wanted runs that must be in progress on average, in each quarter after warming up.
const MIN_IN_PROGRESS: f64 = 0.9;

/// How much more a finished run may cost on disk later than earlier: by a share, or by an amount in KB if that is more.
const GROWTH_SHARE: f64 = 0.25;
const GROWTH_AMOUNT: f64 = 5.0;

/// The result of a soak.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) minutes: f64,
    /// How many runs should be in progress.
    pub(crate) runs: usize,
    /// Whether it was long enough to judge the curves.
    pub(crate) is_judged: bool,
    pub(crate) mix: Counts,
    pub(crate) ended: Ended,
    /// The statements in an idle minute before and after, where they can be counted.
    pub(crate) idle: Option<(i64, i64)>,
    pub(crate) samples: Vec<Sample>,
}

/// The figures of one curve.
struct Judged {
    title: &'static str,
    early: f64,
    late: f64,
    max: f64,
    is_flat: bool,
}

impl Summary {
    /// Whether nothing was lost and nothing failed and, if it is judged, the load was kept up, the curves are flat, and an
    /// idle minute costs no more than before. What could not be counted is not sound.
    pub(crate) fn is_sound(&self) -> bool {
        let is_idle_again = self.idle.map(|(before, after)| after <= before);
        self.lost() == 0
            && self.ended.failed == 0
            && is_idle_again.unwrap_or(!self.is_judged)
            && (!self.is_judged || self.judged().iter().all(|curve| curve.is_flat))
    }

    /// Runs that were accepted and are not there, did not end, or were cancelled and did not end so.
    fn lost(&self) -> i64 {
        let Ended { runs, scheduled, cancelled, unfinished, .. } = self.ended;
        let missing = self.mix.started as i64 - (runs - scheduled);
        let not_cancelled = self.mix.cancelled as i64 - cancelled;
        missing.abs() + unfinished + not_cancelled.abs()
    }

    fn judged(&self) -> Vec<Judged> {
        let judge = |curve: &Curve| {
            let [early, _, late] = self.quarters().map(|samples| mean(samples, curve.value));
            let is_flat = late <= early + (early * curve.share).max(curve.amount);
            let max = self.samples.iter().map(curve.value).fold(0.0, f64::max);
            Judged { title: curve.title, early, late, max, is_flat }
        };
        CURVES.iter().map(judge).chain([self.load(), self.growth()]).collect()
    }

    /// The samples after the first quarter, in three parts.
    fn quarters(&self) -> [&[Sample]; 3] {
        let quarter = self.samples.len() / 4;
        let samples = &self.samples;
        [&samples[quarter..2 * quarter], &samples[2 * quarter..3 * quarter], &samples[3 * quarter..]]
    }

    /// Whether the load was there. A server that accepts nothing would have flat curves, too.
    fn load(&self) -> Judged {
        let shares = self.quarters().map(|samples| mean(samples, |it| it.in_progress as f64));
        let percent = shares.map(|share| 100.0 * share / self.runs.max(1) as f64);
        let is_flat = percent.iter().all(|percent| *percent >= 100.0 * MIN_IN_PROGRESS);
        let max = percent.iter().copied().fold(0.0, f64::max);
        Judged {
            title: "runs in progress, % of those wanted",
            early: percent[0],
            late: percent[2],
            max,
            is_flat,
        }
    }

    /// Whether a finished run costs no more on disk later than earlier: bloat makes it cost more.
    fn growth(&self) -> Judged {
        let kilobytes = self.quarters().map(|samples| {
            let (first, last) = (samples.first(), samples.last());
            let grown = last.map_or(0.0, |it| it.database_mb) - first.map_or(0.0, |it| it.database_mb);
            // The first sample counts runs that ended before it.
            let finished: i64 = samples.iter().skip(1).map(|it| it.finished).sum();
            grown * 1024.0 / finished.max(1) as f64
        });
        let [early, _, late] = kilobytes;
        let is_flat = late <= early + (early * GROWTH_SHARE).max(GROWTH_AMOUNT);
        let max = kilobytes.iter().copied().fold(0.0, f64::max);
        Judged { title: "database, KB per finished run", early, late, max, is_flat }
    }

    /// Writes soak.csv, soak.svg and soak.md.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        write("soak.csv", self.csv())?;
        write("soak.svg", chart::svg(&self.samples))?;
        write("soak.md", format!("{self}\n\n![The curves](soak.svg)\n"))
    }

    fn csv(&self) -> String {
        let names: Vec<&str> = Sample::COLUMNS.iter().map(|(name, _)| *name).collect();
        let row = |sample: &Sample| {
            let cells = Sample::COLUMNS.iter().map(|(_, value)| format!("{:.1}", value(sample)));
            cells.collect::<Vec<_>>().join(",")
        };
        let rows = self.samples.iter().map(row);
        std::iter::once(names.join(",")).chain(rows).map(|line| line + "\n").collect()
    }
}

fn mean(samples: &[Sample], value: fn(&Sample) -> f64) -> f64 {
    samples.iter().map(value).sum::<f64>() / samples.len().max(1) as f64
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Counts { started, cancelled, kills, repeated }, ended) = (self.mix, self.ended);
        writeln!(
            f,
            "{} minutes, {kills} processes killed. {started} runs were requested ({repeated} requests were repeated) and {} \
             scheduled; {cancelled} were cancelled. {} succeeded, {} failed, {} were lost.\n",
            self.minutes,
            ended.scheduled,
            ended.succeeded,
            ended.failed,
            self.lost()
        )?;
        if let Some((before, after)) = self.idle {
            writeln!(f, "Statements in an idle minute: {before} before, {after} after.\n")?;
        } else if self.is_judged {
            writeln!(
                f,
                "Statements in an idle minute could not be counted: use a server with pg_stat_statements.\n"
            )?;
        }
        write!(f, "| curve | second quarter | last quarter | maximum | flat |\n|---|---:|---:|---:|---|")?;
        for Judged { title, early, late, max, is_flat } in self.judged() {
            let verdict = match (self.is_judged, is_flat) {
                (false, _) => "too short to judge",
                (true, true) => "yes",
                (true, false) => "NO",
            };
            write!(f, "\n| {title} | {early:.1} | {late:.1} | {max:.1} | {verdict} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64, memory_mb: f64) -> Sample {
        Sample {
            seconds,
            in_progress: 50,
            finished: 10,
            kills: 0,
            memory_mb,
            connections: 20,
            idle_in_transaction: 0,
            dead_percent: 4.0,
            database_mb: 12.0,
            trigger_p50_ms: 3.0,
            trigger_p99_ms: 9.0,
            run_p50_ms: 2_100.0,
        }
    }

    fn summary(memory: impl Fn(f64) -> f64) -> Summary {
        let samples = (0..40).map(|at| sample(f64::from(at), memory(f64::from(at)))).collect();
        Summary {
            minutes: 20.0,
            runs: 50,
            is_judged: true,
            mix: Counts { started: 100, cancelled: 10, kills: 3, repeated: 1 },
            ended: Ended {
                runs: 120,
                scheduled: 20,
                succeeded: 110,
                cancelled: 10,
                failed: 0,
                unfinished: 0,
            },
            idle: Some((1, 1)),
            samples,
        }
    }

    #[test]
    fn flat_curves_without_losses_are_sound() {
        assert!(summary(|_| 200.0).is_sound());
    }

    #[test]
    fn memory_that_grows_is_not_sound() {
        let leaking = summary(|seconds| 200.0 + 5.0 * seconds);
        assert!(!leaking.is_sound());
        assert!(leaking.to_string().contains("| memory of all processes, MB | 272.5 | 372.5 | 395.0 | NO |"));
    }

    #[test]
    fn losses_failures_and_statements_when_idle_are_not_sound() {
        let sound = summary(|_| 200.0);
        for ended in [
            Ended { runs: 119, ..sound.ended },
            Ended { unfinished: 1, ..sound.ended },
            Ended { failed: 1, ..sound.ended },
            Ended { cancelled: 9, ..sound.ended },
        ] {
            assert!(!Summary { ended, ..sound.clone() }.is_sound(), "{ended:?}");
        }
        assert!(!Summary { idle: Some((1, 2)), ..sound.clone() }.is_sound());
        assert!(!Summary { idle: None, ..sound.clone() }.is_sound(), "what is judged is counted");
        assert!(Summary { idle: None, is_judged: false, ..sound }.is_sound());
    }

    /// A sound summary with the samples changed, each by its number.
    fn with(change: impl Fn(usize, &mut Sample)) -> Summary {
        let mut summary = summary(|_| 200.0);
        summary.samples.iter_mut().enumerate().for_each(|(number, sample)| change(number, sample));
        summary
    }

    #[test]
    fn a_load_that_is_not_kept_up_is_not_sound() {
        assert!(!with(|_, sample| sample.in_progress = 0).is_sound(), "nothing was accepted");
        assert!(!with(|number, sample| sample.in_progress = 50 - number as i64).is_sound(), "it fades");
        let dips = with(|number, sample| sample.in_progress = if number == 25 { 0 } else { 50 });
        assert!(dips.is_sound(), "a moment without runs is no loss of load");
        assert!(with(|number, sample| sample.in_progress = if number < 10 { 0 } else { 46 }).is_sound());
    }

    #[test]
    fn memory_may_hardly_grow() {
        assert!(!summary(|seconds| 200.0 + 0.6 * seconds).is_sound());
        assert!(summary(|seconds| 200.0 + 0.1 * seconds).is_sound());
    }

    #[test]
    fn a_database_that_bloats_is_not_sound() {
        let linear = with(|number, sample| sample.database_mb = 12.0 + 0.2 * number as f64);
        assert!(linear.is_sound(), "each run costs the same: {linear}");
        let bloated = with(|number, sample| sample.database_mb = 12.0 + 0.02 * (number * number) as f64);
        assert!(!bloated.is_sound(), "{bloated}");
        assert!(bloated.to_string().contains("database, KB per finished run"));
    }

    #[test]
    fn every_curve_is_drawn_and_every_column_written() {
        let summary = summary(|_| 200.0);
        assert_eq!(chart::svg(&summary.samples).matches("<polyline").count(), CURVES.len());
        let csv = summary.csv();
        assert!(csv.starts_with("seconds,in_progress,"), "{csv}");
        assert!(csv.lines().all(|line| line.split(',').count() == Sample::COLUMNS.len()), "{csv}");
    }
}
