//! The curves of a soak as SVG, one small chart for each.

use std::fmt::Write;

use super::sample::Sample;
use super::summary::CURVES;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 130.0;
/// Around each chart: for its title above, and the time below.
const MARGIN: f64 = 30.0;
const COLUMNS: usize = 2;

/// One chart for each curve, from zero to its maximum.
pub(super) fn svg(samples: &[Sample]) -> String {
    let rows = CURVES.len().div_ceil(COLUMNS);
    let (width, height) = ((WIDTH + MARGIN) * COLUMNS as f64 + MARGIN, (HEIGHT + 2.0 * MARGIN) * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (number, curve) in CURVES.iter().enumerate() {
        let x = MARGIN + (WIDTH + MARGIN) * (number % COLUMNS) as f64;
        let y = MARGIN + (HEIGHT + 2.0 * MARGIN) * (number / COLUMNS) as f64;
        let points: Vec<(f64, f64)> =
            samples.iter().map(|sample| (sample.seconds, (curve.value)(sample))).collect();
        let _ = write!(svg, "<g transform=\"translate({x} {y})\">\n{}</g>\n", chart(curve.title, &points));
    }
    svg.push_str("</svg>\n");
    svg
}

fn chart(title: &str, points: &[(f64, f64)]) -> String {
    let max = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let (last, top) = (max(&mut points.iter().map(|(x, _)| *x)), max(&mut points.iter().map(|(_, y)| *y)));
    let scaled = points.iter().map(|(x, y)| {
        let (x, y) = (x / last.max(1e-9) * WIDTH, HEIGHT - y / top.max(1e-9) * HEIGHT);
        format!("{x:.1},{y:.1}")
    });
    let line = scaled.collect::<Vec<_>>().join(" ");
    format!(
        "<text y=\"-8\" fill=\"#222\">{title}, at most {top:.0}</text>\n\
         <path d=\"M0 0V{HEIGHT}H{WIDTH}\" fill=\"none\" stroke=\"#999\"/>\n\
         <polyline points=\"{line}\" fill=\"none\" stroke=\"#0b6bcb\" stroke-width=\"1.5\"/>\n\
         <text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{:.1} min</text>\n",
        HEIGHT + 16.0,
        last / 60.0
    )
}
