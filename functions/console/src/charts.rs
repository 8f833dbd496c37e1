//! Small pictures: bars of time, strips of runs, sparklines, meters. SVG, since a page has no styles of its own.

use std::fmt::Write;

use api::views::PointView;
use chrono::TimeDelta;
use model::{Instant, RunState, TaskState};
use read::RunSummary;

use crate::phases::{Phase, Stretch};
use crate::show::{self, Markup};

/// The width of a row of bars, in units.
const WIDE: f64 = 1_000.0;

/// What a task did with its time, on the line of its run.
pub(crate) fn bars(stretches: &[Stretch], state: TaskState, from: Instant, to: Instant) -> Markup {
    let all = milliseconds(to - from).max(1.0);
    let mut out = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDE} 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"{WIDE}\" height=\"20\"/>"
    );
    for (index, stretch) in stretches.iter().enumerate() {
        let left = milliseconds(stretch.from - from) / all * WIDE;
        let width =
            (milliseconds(stretch.to - stretch.from) / all * WIDE).max(2.0).min(WIDE - left.min(WIDE - 2.0));
        let last = index + 1 == stretches.len();
        let end = match (stretch.phase, stretch.failed, state) {
            (Phase::Work, true, _) => " failed",
            (Phase::Work, false, TaskState::Succeeded) if last => " succeeded",
            _ => "",
        };
        let (y, height) = if stretch.phase == Phase::Work { (2, 16) } else { (7, 6) };
        let (name, words) = (stretch.phase.name(), stretch.phase.words());
        let took = show::span(stretch.to - stretch.from);
        let of = if stretch.attempt > 0 { format!("Attempt {}: ", stretch.attempt) } else { String::new() };
        put(
            &mut out,
            format_args!(
                "<rect class=\"{name}{end}\" x=\"{:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\">\
                 <title>{of}{words}, {took}</title></rect>",
                left.min(WIDE - 2.0)
            ),
        );
    }
    Markup(out + "</svg>")
}

fn milliseconds(span: TimeDelta) -> f64 {
    span.num_milliseconds().max(0) as f64
}

/// The last runs of a workflow as squares, the newest at the right: what failed is also higher.
pub(crate) fn strip(runs: &[(String, RunState, String)]) -> Markup {
    let width = runs.len().max(1) * 11;
    let mut out = format!(
        "<svg class=\"strip\" width=\"{width}\" height=\"20\" viewBox=\"0 0 {width} 20\" role=\"group\" \
         aria-label=\"Last runs\">"
    );
    for (index, (link, state, words)) in runs.iter().rev().enumerate() {
        let (y, height) = match state {
            RunState::Failed | RunState::Stalled => (1, 18),
            RunState::Succeeded => (5, 14),
            _ => (11, 8),
        };
        let words = show::escaped(words);
        put(
            &mut out,
            format_args!(
                "<a href=\"{link}\" aria-label=\"{words}\"><title>{words}</title>\
                 <rect class=\"{}\" x=\"{}\" y=\"{y}\" width=\"8\" height=\"{height}\" rx=\"2\"/></a>",
                state.name(),
                index * 11 + 1
            ),
        );
    }
    Markup(out + "</svg>")
}

/// How many runs began in each part of a window, and how many of them failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Beat {
    pub(crate) good: u32,
    pub(crate) bad: u32,
    pub(crate) other: u32,
}

/// The window's parts, oldest first.
pub(crate) fn beats(runs: &[(Instant, RunState)], from: Instant, to: Instant, parts: usize) -> Vec<Beat> {
    let mut beats = vec![Beat::default(); parts];
    let all = milliseconds(to - from).max(1.0);
    for (at, state) in runs.iter().filter(|(at, _)| (from..=to).contains(at)) {
        let index = (milliseconds(*at - from) / all * parts as f64) as usize;
        let beat = &mut beats[index.min(parts - 1)];
        match state {
            RunState::Succeeded => beat.good += 1,
            RunState::Failed | RunState::Stalled => beat.bad += 1,
            _ => beat.other += 1,
        }
    }
    beats
}

/// Columns of runs, failures at the foot.
pub(crate) fn spark(beats: &[Beat], words: &str) -> Markup {
    const HIGH: f64 = 60.0;
    let most = beats.iter().map(|beat| beat.good + beat.bad + beat.other).max().unwrap_or_default().max(1);
    let width = WIDE / beats.len().max(1) as f64;
    let mut out = format!(
        "<svg class=\"spark\" viewBox=\"0 0 {WIDE} 64\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">\
         <path class=\"base\" d=\"M0 62.5H{WIDE}\" vector-effect=\"non-scaling-stroke\"/>",
        show::escaped(words)
    );
    for (index, beat) in beats.iter().enumerate() {
        let mut foot = 62.0;
        for (class, count) in [("bad", beat.bad), ("other", beat.other), ("good", beat.good)] {
            let height = f64::from(count) / f64::from(most) * HIGH;
            foot -= height;
            if count > 0 {
                let left = index as f64 * width + width * 0.12;
                put(
                    &mut out,
                    format_args!(
                        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{foot:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                        width * 0.76
                    ),
                );
            }
        }
    }
    Markup(out + "</svg>")
}

/// How long runs took, the newest at the right.
pub(crate) fn durations(runs: &[RunSummary]) -> Markup {
    const HIGH: f64 = 60.0;
    let took = |run: &RunSummary| Some(milliseconds(run.finished_at? - run.started_at?));
    let most = runs.iter().filter_map(took).fold(1.0, f64::max);
    // A few runs make no broader columns than many.
    let width = WIDE / runs.len().max(30) as f64;
    let mut out = format!(
        "<svg class=\"spark\" viewBox=\"0 0 {WIDE} 64\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"Duration of the last runs, at most {}\">",
        show::span(TimeDelta::milliseconds(most as i64))
    );
    for (index, run) in runs.iter().rev().enumerate() {
        let Some(long) = took(run) else { continue };
        let (height, left) = ((long / most * HIGH).max(1.0), index as f64 * width + width * 0.12);
        let class = match run.state {
            RunState::Succeeded => "good",
            RunState::Failed => "bad",
            _ => "other",
        };
        let words = show::span(TimeDelta::milliseconds(long as i64));
        put(
            &mut out,
            format_args!(
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\">\
                 <title>{words}</title></rect>",
                62.0 - height,
                width * 0.76
            ),
        );
    }
    Markup(out + "</svg>")
}

/// A bar that shows the used share of a limit.
pub(crate) fn meter(used: &u32, of: &Option<u32>) -> Markup {
    let used = *used;
    let part = of.filter(|of| *of > 0).map_or(0.0, |of| (f64::from(used) / f64::from(of)).min(1.0)) * 100.0;
    let class = if of.is_some_and(|of| used >= of) { "full" } else { "part" };
    Markup(format!(
        "<svg class=\"meter\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"all\" width=\"100\" height=\"8\"/><rect class=\"{class}\" width=\"{part:.1}\" height=\"8\"/></svg>"
    ))
}

/// A bar that shows how far an attempt has come.
pub(crate) fn fraction(fraction: &f64) -> Markup {
    let part = fraction.clamp(0.0, 1.0) * 100.0;
    Markup(format!(
        "<svg class=\"meter\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{part:.0} percent done\"><rect class=\"all\" width=\"100\" height=\"8\"/>\
         <rect class=\"part\" width=\"{part:.1}\" height=\"8\"/></svg>"
    ))
}

/// The values of a metric over time as a line; nothing for a single value.
pub(crate) fn series(name: &str, points: &[PointView]) -> Markup {
    const HIGH: f64 = 40.0;
    let (Some(first), Some(last)) = (points.first(), points.last().filter(|_| points.len() > 1)) else {
        return Markup(String::new());
    };
    let all = milliseconds(last.at - first.at).max(1.0);
    let low = points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min);
    let range = points.iter().map(|point| point.value - low).fold(0.0, f64::max);
    let mut line = String::new();
    for point in points {
        let left = milliseconds(point.at - first.at) / all * WIDE;
        // Values that are all the same make a line in the middle.
        let height = if range > 0.0 { (point.value - low) / range } else { 0.5 };
        put(&mut line, format_args!("{left:.1},{:.1} ", 2.0 + (1.0 - height) * HIGH));
    }
    let words = show::escaped(&format!("{name} from {} to {}", first.value, last.value));
    Markup(format!(
        "<svg class=\"series\" viewBox=\"0 0 {WIDE} 44\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{words}\"><title>{words}</title>\
         <polyline points=\"{}\" vector-effect=\"non-scaling-stroke\"/></svg>",
        line.trim_end()
    ))
}

/// The percentile of some values; none if there are none.
pub(crate) fn percentile(sorted: &[i64], share: usize) -> Option<i64> {
    sorted.get((sorted.len() * share).div_ceil(100).checked_sub(1)?).copied()
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a text takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Instant {
        Instant::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    #[test]
    fn runs_are_counted_in_the_part_of_the_window_in_which_they_began() {
        let runs = [(at(1), RunState::Succeeded), (at(19), RunState::Failed), (at(20), RunState::Running)];
        let beats = beats(&runs, at(0), at(20), 2);
        assert_eq!(beats, [Beat { good: 1, bad: 0, other: 0 }, Beat { good: 0, bad: 1, other: 1 }]);
    }

    #[test]
    fn a_series_is_drawn_over_its_time_and_range_and_its_name_is_escaped() {
        let point = |second, value| PointView { at: at(second), value };
        let drawn = series("<rows>", &[point(0, 10.0), point(5, 30.0), point(10, 20.0)]).0;
        assert!(drawn.contains("points=\"0.0,42.0 500.0,2.0 1000.0,22.0\""), "{drawn}");
        assert!(drawn.contains("&lt;rows&gt; from 10 to 20") && !drawn.contains("<rows>"), "{drawn}");
        assert!(series("n", &[point(0, 1.0), point(1, 1.0)]).0.contains("0.0,22.0 1000.0,22.0"));
        assert_eq!(series("n", &[point(0, 1.0)]).0, "");
        assert!(fraction(&7.0).0.contains("100 percent done"));
    }

    #[test]
    fn percentiles_are_values_that_there_were() {
        assert_eq!([percentile(&[1, 2, 3, 4], 50), percentile(&[1, 2, 3, 4], 95)], [Some(2), Some(4)]);
        assert_eq!(percentile(&[], 50), None);
    }
}
