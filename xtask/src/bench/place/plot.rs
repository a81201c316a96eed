//! Both times in one picture: an SVG that needs nothing else, with the slowest answer of each second above, and below it what
//! the full node's interface carried. A function of values.

use std::fmt::Write;

use super::story::Story;
use crate::bench::real;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 110.0;
/// Tops and heights of the two charts.
const ANSWERS: (f64, f64) = (56.0, 230.0);
const CARRIED: (f64, f64) = (346.0, 110.0);
const HEIGHT: f64 = 500.0;
/// The scale of answers, in milliseconds: each line ten times the one below.
const DECADES: [(f64, &str); 5] = [
    (1.0, "1 ms"),
    (10.0, "10 ms"),
    (100.0, "100 ms"),
    (1e3, "1 s"),
    (1e4, "10 s"),
];
const STYLE: &str = "\
    svg{--ink:#1c2733;--rule:#d5dbe1;--off:#b3402a;--on:#1f6f8b;--mark:#6b7785;background:#fff;color:var(--ink);\
    font:13px system-ui,sans-serif}\
    @media(prefers-color-scheme:dark){svg{--ink:#dfe6ee;--rule:#3a4550;--off:#f08a70;--on:#7cc4dd;--mark:#9aa6b2;\
    background:#14191f}}\
    text{fill:var(--ink)}.mark{fill:var(--mark)}.off{fill:var(--off);font-weight:600}.on{fill:var(--on);font-weight:600}";

/// A line, by time.
type Points = [(f64, f64)];

/// Where a chart is, and how its values become heights.
struct Chart {
    top: f64,
    height: f64,
    seconds: f64,
    /// From 0, at the bottom, to 1.
    share: fn(f64, f64) -> f64,
    most: f64,
}

impl Chart {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + seconds / self.seconds * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (self.share)(value, self.most).clamp(0.0, 1.0);
        self.top + self.height * (1.0 - share)
    }

    fn rule(&self, svg: &mut String, value: f64, label: &str) {
        let y = self.y(value);
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"var(--rule)\"/>\
             <text x=\"{x}\" y=\"{ty:.1}\" text-anchor=\"end\">{label}</text>",
            right = WIDTH - RIGHT,
            x = LEFT - 6.0,
            ty = y + 4.0,
        );
    }

    fn line(&self, svg: &mut String, points: &Points, name: &str, class: &str) {
        let mut path = String::new();
        for (seconds, value) in points {
            let pen = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{pen}{:.1} {:.1}", self.x(*seconds), self.y(*value));
        }
        let end = points.last().map_or(self.most, |(_, value)| *value);
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"var(--{class})\" stroke-width=\"1.8\"/>\
             <text class=\"{class}\" x=\"{x}\" y=\"{y:.1}\">{name}</text>",
            x = WIDTH - RIGHT + 8.0,
            y = self.y(end) + 4.0,
        );
    }

    fn times(&self, svg: &mut String) {
        let y = self.top + self.height + 18.0;
        let mut seconds = 0.0;
        while seconds <= self.seconds {
            let x = self.x(seconds);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{seconds:.0} s</text>"
            );
            seconds += 20.0;
        }
    }

    /// A moment that is named at the top.
    fn mark(&self, svg: &mut String, seconds: f64, name: &str, row: f64) {
        let x = self.x(seconds);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"var(--mark)\" stroke-dasharray=\"3 3\"/>\
             <text class=\"mark\" x=\"{tx:.1}\" y=\"{y}\">{name}</text>",
            top = self.top - 6.0,
            bottom = self.top + self.height,
            tx = x + 4.0,
            y = self.top + 8.0 + row * 15.0,
        );
    }
}

pub(super) fn draw(story: &Story, capacity: u64) -> String {
    let began = story.off.quiet.started_unix_seconds;
    let (off, on) = (story.off.slowest(began), story.on.slowest(began));
    let seconds = off.iter().chain(&on).map(|(at, _)| *at);
    let seconds = seconds.fold(1.0, f64::max);
    let capacity = real(capacity) / 1e6;
    let answers = Chart {
        top: ANSWERS.0,
        height: ANSWERS.1,
        seconds,
        share: |value, most| value.max(1.0).log10() / most.log10(),
        most: 1e4,
    };
    let carried = Chart {
        top: CARRIED.0,
        height: CARRIED.1,
        seconds,
        share: |value, most| value / most,
        most: capacity * 1.1,
    };
    let title = "A service while somebody else fills the network of one of its nodes";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <desc>The slowest answer of each second, with place off and with place on; below, what the full node's interface \
         carried meanwhile. Drawn by cargo xtask bench place.</desc>\n<style>{STYLE}</style>\n\
         <text x=\"{LEFT}\" y=\"22\" font-weight=\"600\">Slowest answer of each second</text>\n",
    );
    for (value, label) in DECADES {
        answers.rule(&mut svg, value, label);
    }
    answers.line(&mut svg, &off, "place off", "off");
    answers.line(&mut svg, &on, "place on", "on");
    for (at, name, row) in [
        (story.filled, "the interface fills up", 0.0),
        (story.labelled, "on: labelled", 1.0),
        (story.moved, "on: the pod has moved", 2.0),
    ] {
        answers.mark(&mut svg, at, name, row);
    }
    answers.times(&mut svg);
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{y}\" font-weight=\"600\">Carried by that interface, in Mbit/s</text>",
        y = CARRIED.0 - 14.0,
    );
    for share in [0.0, 0.5, 1.0] {
        let value = capacity * share;
        carried.rule(&mut svg, value, &format!("{value:.0}"));
    }
    carried.line(&mut svg, &story.carried, "", "ink");
    carried.times(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bench::place::story::Side, load::report::tests::report};

    fn side(slowest_milliseconds: u32) -> Side {
        let part = |began| report(began, &[slowest_milliseconds * 1000; 20]);
        Side {
            quiet: part(100.0),
            turning: part(120.0),
            full: part(140.0),
            bulk: part(160.0),
        }
    }

    #[test]
    fn slower_answers_are_higher_and_moments_are_named_where_they_are() {
        let story = Story {
            off: side(1_000),
            on: side(10),
            filled: 20.0,
            labelled: 30.0,
            moved: 40.0,
            carried: (0..60).map(f64::from).map(|at| (at, 100.0)).collect(),
        };
        let svg = draw(&story, 200_000_000);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let first = |class: &str| -> (f64, f64) {
            let stroke = format!("stroke=\"var(--{class})");
            let line = svg.lines().find(|line| line.contains(&stroke)).unwrap();
            let mut point = line.split('M').nth(1).unwrap().split(['L', ' ', 'V']);
            let mut number = || point.next().unwrap().parse().unwrap();
            (number(), number())
        };
        let close = |one: f64, other: f64| assert!((one - other).abs() < 0.1, "{one}, {other}");
        // A quarter of the scale from the bottom, and three quarters.
        close(first("on").1, ANSWERS.0 + ANSWERS.1 * 0.75);
        close(first("off").1, ANSWERS.0 + ANSWERS.1 * 0.25);
        // The first second's middle is at the left, and 20 of 59.5 seconds are a third of the way.
        let width = WIDTH - LEFT - RIGHT;
        close(first("on").0, LEFT + width * 0.5 / 59.5);
        close(first("mark").0, LEFT + width * 20.0 / 59.5);
        for name in ["fills up", "on: labelled", "has moved"] {
            assert!(svg.contains(name), "{svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
