//! Lines over time and bars, as inline SVG in the page's colours; each line is named where it ends.

use std::fmt::Write;

use super::escape;
use super::times;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 24.0;
/// More points than this cannot be seen.
const MOST_POINTS: usize = 600;
/// Colour and dashes: where two lines run on each other, the dashed one shows the other through.
const PENS: [(&str, &str); 4] = [
    ("var(--a)", "none"),
    ("var(--b)", "none"),
    ("var(--c)", "none"),
    ("var(--d)", "7 7"),
];

/// One line; NaN breaks it.
pub(super) struct Line {
    name: String,
    values: Vec<f64>,
}

/// Lines over time.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) unit: &'a str,
    /// From, to.
    pub(super) time: (i64, i64),
    pub(super) lines: Vec<Line>,
}

/// Named bars.
pub(super) struct Bars<'a> {
    pub(super) title: &'a str,
    pub(super) rows: Vec<Bar<'a>>,
}

/// One of them.
pub(super) struct Bar<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    /// Written beside it.
    pub(super) said: String,
    /// Drawn as an outline: no fair comparison.
    pub(super) is_hollow: bool,
}

impl Line {
    pub(super) fn new(name: &str, values: Vec<f64>) -> Self {
        Self {
            name: name.to_owned(),
            values,
        }
    }

    /// How many values become one point.
    fn group(&self) -> usize {
        self.values.len().div_ceil(MOST_POINTS).max(1)
    }

    /// Means of neighbours, so that there are not too many points.
    fn thinned(&self) -> Vec<f64> {
        let mean = |part: &[f64]| {
            let known: Vec<f64> = part.iter().copied().filter(|v| v.is_finite()).collect();
            known.iter().sum::<f64>() / as_float(known.len())
        };
        self.values.chunks(self.group()).map(mean).collect()
    }
}

impl Chart<'_> {
    pub(super) fn draw(&self, page: &mut String) {
        let lines: Vec<Vec<f64>> = self.lines.iter().map(Line::thinned).collect();
        let known = lines.iter().flatten().copied().filter(|v| v.is_finite());
        let top = known.clone().fold(0.0, f64::max);
        let low = known.fold(0.0, f64::min);
        let span = if top > low { (top - low) * 1.05 } else { 1.0 };
        let y = |value: f64| HEIGHT - BOTTOM - (value - low) / span * (HEIGHT - TOP - BOTTOM);
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "<figure><figcaption>{title}, {unit}{means}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\
             <title>{title}</title><desc>{title} in {unit}, {names}</desc>",
            title = escape(self.title),
            unit = escape(self.unit),
            means = self.means(),
            names = escape(
                &self
                    .lines
                    .iter()
                    .map(|l| l.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        );
        let step = round_step(span / 4.0);
        for value in (0..=20_u8).map(|k| (low / step).floor() * step + step * f64::from(k)) {
            if value < low - step / 1e6 || value > low + span {
                continue;
            }
            let at = y(value);
            let _ = write!(
                page,
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"var(--rule)\"/><text x=\"{x}\" y=\"{ty:.1}\" \
                 text-anchor=\"end\">{label}</text>",
                right = WIDTH - RIGHT,
                x = LEFT - 6.0,
                ty = at + 4.0,
                label = short(value, step),
            );
        }
        self.times(page);
        for (i, (line, values)) in self.lines.iter().zip(&lines).enumerate() {
            let pen = PENS.get(i % PENS.len()).copied();
            let (colour, dashes) = pen.unwrap_or(("var(--ink)", "none"));
            let step = (WIDTH - LEFT - RIGHT) / as_float(values.len().max(2) - 1);
            let mut path = String::new();
            let mut pen = 'M';
            for (k, value) in values.iter().enumerate() {
                if value.is_finite() {
                    let _ = write!(
                        path,
                        "{pen}{:.1} {:.1}",
                        LEFT + step * as_float(k),
                        y(*value)
                    );
                    pen = 'L';
                } else {
                    pen = 'M';
                }
            }
            let end = values
                .iter()
                .rev()
                .copied()
                .find(|v| v.is_finite())
                .unwrap_or(0.0);
            let _ = write!(
                page,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"{dashes}\"/>\
                 <text class=\"name\" x=\"{x}\" y=\"{at:.1}\" style=\"fill:{colour}\">{name}</text>",
                x = WIDTH - RIGHT + 6.0,
                at = label_height(i, y(end), &lines, y),
                name = escape(&line.name),
            );
        }
        page.push_str("</svg></figure>\n");
    }

    /// Says so where a point stands for several slots.
    fn means(&self) -> String {
        let Some(line) = self.lines.first().filter(|line| line.group() > 1) else {
            return String::new();
        };
        let seconds = (self.time.1 - self.time.0) / i64::try_from(line.values.len()).unwrap_or(1);
        let seconds = seconds * i64::try_from(line.group()).unwrap_or(1);
        format!("; each point the mean of {} hours", as_hours(seconds))
    }

    fn times(&self, page: &mut String) {
        let (from, to) = self.time;
        for (at, label) in times::ticks(from, to) {
            #[expect(clippy::cast_precision_loss, reason = "seconds of some years")]
            let part = (at - from) as f64 / (to - from).max(1) as f64;
            let x = LEFT + (WIDTH - LEFT - RIGHT) * part;
            let _ = write!(
                page,
                "<path d=\"M{x:.1} {TOP}V{base}\" stroke=\"var(--rule)\" stroke-dasharray=\"1 3\"/>\
                 <text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>",
                base = HEIGHT - BOTTOM + 4.0,
                y = HEIGHT - 6.0,
            );
        }
    }
}

impl Bars<'_> {
    pub(super) fn draw(&self, page: &mut String) {
        const ROW: f64 = 24.0;
        const NAMES: f64 = 230.0;
        const LONGEST: f64 = 340.0;
        let height = ROW * as_float(self.rows.len());
        let most = self.rows.iter().map(|row| row.value).fold(1e-9, f64::max);
        let title = escape(self.title);
        let _ = write!(
            page,
            "<figure><figcaption>{title}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\
             <title>{title}</title><desc>One bar per policy</desc>",
        );
        for (i, bar) in self.rows.iter().enumerate() {
            let Bar {
                name,
                value,
                said,
                is_hollow,
            } = bar;
            let top = ROW * as_float(i);
            let long = (value / most * LONGEST).max(0.0);
            let fill = match (is_hollow, i) {
                (true, _) => "none\" stroke=\"var(--b)\" stroke-dasharray=\"4 3",
                (false, 0) => "var(--a)",
                (false, _) => "var(--soft)",
            };
            let _ = write!(
                page,
                "<text class=\"name\" x=\"{x}\" y=\"{base}\" text-anchor=\"end\">{name}</text>\
                 <rect x=\"{NAMES}\" y=\"{y}\" width=\"{long:.1}\" height=\"16\" fill=\"{fill}\"/>\
                 <text x=\"{end:.1}\" y=\"{base}\">{said}</text>",
                x = NAMES - 8.0,
                base = top + 16.0,
                y = top + 4.0,
                end = NAMES + long + 8.0,
                name = escape(name),
                said = escape(said),
            );
        }
        page.push_str("</svg></figure>\n");
    }
}

/// Names of lines that end close together are moved apart, in the order of their ends.
fn label_height(i: usize, own: f64, lines: &[Vec<f64>], y: impl Fn(f64) -> f64) -> f64 {
    let end = |values: &Vec<f64>| {
        y(values
            .iter()
            .rev()
            .copied()
            .find(|v| v.is_finite())
            .unwrap_or(0.0))
    };
    let mut ends: Vec<(usize, f64)> = lines.iter().map(end).enumerate().collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut last = f64::NEG_INFINITY;
    for (line, at) in ends {
        let placed = at.max(last + 14.0);
        if line == i {
            return placed + 4.0;
        }
        last = placed;
    }
    own
}

/// The next larger of 1, 2, 2.5, 5 or 10 times a power of ten: what people count in.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|of| of * power);
    steps
        .into_iter()
        .find(|round| *round >= step * (1.0 - 1e-9))
        .unwrap_or(step)
}

/// A number with as many digits as the steps of its scale need.
fn short(value: f64, step: f64) -> String {
    let digits = (0..4_usize).find(|digits| {
        let scaled = step * 10_f64.powf(as_float(*digits));
        (scaled - scaled.round()).abs() < 1e-6
    });
    format!("{value:.*}", digits.unwrap_or(4))
}

fn as_hours(seconds: i64) -> String {
    let tenths = (seconds * 10 + 1_800) / 3_600;
    if tenths % 10 == 0 {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

#[expect(clippy::cast_precision_loss, reason = "points and rows of a chart")]
fn as_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_in_round_numbers() {
        assert!((round_step(47.0) - 50.0).abs() < 1e-9);
        assert!((round_step(0.026) - 0.05).abs() < 1e-9);
        assert!((round_step(0.25) - 0.25).abs() < 1e-9);
        assert!((round_step(1.0) - 1.0).abs() < 1e-9);
        assert_eq!(short(0.75, 0.25), "0.75");
        assert_eq!(short(150.0, 50.0), "150");
        assert_eq!(short(0.05, 0.025), "0.050");
        assert_eq!(as_hours(36_000), "10");
        assert_eq!(as_hours(5_400), "1.5");
    }
}
