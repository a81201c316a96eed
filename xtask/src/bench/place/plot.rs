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

pub(super) fn draw(off: &Story, on: &Story, capacity: u64) -> String {
    let all = off.slowest.iter().chain(&on.slowest);
    let seconds = all.map(|(at, _)| *at).fold(1.0, f64::max);
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
    answers.line(&mut svg, &off.slowest, "place off", "off");
    answers.line(&mut svg, &on.slowest, "place on", "on");
    answers.mark(&mut svg, on.filled, "the interface fills up", 0.0);
    for (at, name, row) in [
        (on.labelled, "on: labelled", 1.0),
        (on.moved, "on: the pod has moved", 2.0),
    ] {
        if let Some(at) = at {
            answers.mark(&mut svg, at, name, row);
        }
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
    carried.line(&mut svg, &off.carried, "", "off");
    carried.line(&mut svg, &on.carried, "", "on");
    carried.times(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::tests::report;

    fn story(slowest: f64, moved: Option<f64>) -> Story {
        let by_second = |value: f64| (0..60).map(f64::from).map(|at| (at, value)).collect();
        Story {
            quiet: report(0.0, &[1]),
            full: report(0.0, &[1]),
            bulk: report(0.0, &[1]),
            filled: 20.0,
            labelled: moved.map(|at| at - 10.0),
            moved,
            slowest: by_second(slowest),
            carried: by_second(100.0),
            sent: 1,
            failed: 0,
        }
    }

    #[test]
    fn slower_answers_are_higher_and_moments_are_named_where_they_are() {
        let svg = draw(&story(1_000.0, None), &story(10.0, Some(45.0)), 200_000_000);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let height = |class: &str| -> f64 {
            let path = svg
                .lines()
                .find(|line| line.contains(&format!("stroke=\"var(--{class})")));
            let first = path.unwrap().split('M').nth(1).unwrap();
            let y = first.split(['L', ' ']).nth(1).unwrap();
            y.parse().unwrap()
        };
        // A quarter of the scale from the bottom, and three quarters.
        assert!((height("on") - (56.0 + 230.0 * 0.75)).abs() < 0.1);
        assert!((height("off") - (56.0 + 230.0 * 0.25)).abs() < 0.1);
        let named: Vec<&str> = ["fills up", "on: labelled", "has moved"].into();
        assert!(named.iter().all(|name| svg.contains(name)), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn what_did_not_happen_is_not_named() {
        let svg = draw(&story(50.0, None), &story(10.0, None), 200_000_000);
        assert!(!svg.contains("labelled") && !svg.contains("moved"));
    }
}
