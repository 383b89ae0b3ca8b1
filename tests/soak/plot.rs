//! Draws the figures of the run as an SVG picture, and writes them as a Markdown page.

use std::fmt::Write as _;

use crate::Options;
use crate::figures::{HEAD, Measured, mib};

const WIDTH: f64 = 720.0;
const PANEL: f64 = 150.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 130.0;

/// One curve: its name, its colour, and a value for each tenth of the run.
struct Curve {
    name: &'static str,
    colour: &'static str,
    values: Vec<f64>,
}

/// One diagram: its title, its unit and its curves.
struct Panel {
    title: &'static str,
    unit: &'static str,
    curves: Vec<Curve>,
}

#[expect(clippy::cast_precision_loss, reason = "values of a drawing need no precision")]
fn panels(measured: &Measured) -> Vec<Panel> {
    const COLOURS: [&str; 2] = ["#1f6feb", "#d1570b"];
    const NAMES: [&str; 2] = ["stdio", "HTTP"];
    let curves = |value: &dyn Fn(usize, usize) -> f64| {
        let values = |process| (0..measured.tenths.len()).map(|tenth| value(tenth, process)).collect();
        (0..2).map(|at| Curve { name: NAMES[at], colour: COLOURS[at], values: values(at) }).collect()
    };
    let sample = |tenth: usize, process: usize| measured.tenths[tenth].samples[process];
    let latencies = measured.tenths.iter().map(|tenth| tenth.latency.as_secs_f64() * 1e3).collect();
    vec![
        Panel { title: "memory (RSS)", unit: "MiB", curves: curves(&|tenth, at| mib(sample(tenth, at).memory)) },
        Panel { title: "descriptors", unit: "", curves: curves(&|tenth, at| sample(tenth, at).descriptors as f64) },
        Panel { title: "threads", unit: "", curves: curves(&|tenth, at| sample(tenth, at).threads as f64) },
        Panel {
            title: "median of honest reads",
            unit: "ms",
            curves: vec![Curve { name: "stdio", colour: COLOURS[0], values: latencies }],
        },
    ]
}

/// The SVG picture.
pub(crate) fn svg(measured: &Measured) -> String {
    let panels = panels(measured);
    #[expect(clippy::cast_precision_loss, reason = "there are four panels")]
    let height = PANEL * panels.len() as f64 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "there are four panels")]
        draw(&mut svg, panel, PANEL * at as f64);
    }
    let bottom = height - 10.0;
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{bottom}\" fill=\"#555\">tenths of the run, left to right</text>\n</svg>"
    );
    svg
}

fn draw(svg: &mut String, panel: &Panel, top: f64) {
    let most = panel.curves.iter().flat_map(|curve| &curve.values).fold(0.0_f64, |a, b| a.max(*b)).max(1e-9) * 1.1;
    let (floor, ceiling) = (top + PANEL - 15.0, top + 30.0);
    #[expect(clippy::cast_precision_loss, reason = "a curve has ten values")]
    let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / 9.0;
    let y = |value: f64| floor - (floor - ceiling) * value / most;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>", top + 18.0, panel.title);
    for share in [0.0, 0.5, 1.0] {
        let value = most / 1.1 * share;
        let (at, end) = (y(value), WIDTH - RIGHT);
        let digits = if most < 20.0 { 2 } else { 0 };
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{end}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{value:.digits$} {}</text>",
            LEFT - 6.0,
            at + 4.0,
            panel.unit
        );
    }
    for curve in &panel.curves {
        let points: Vec<_> =
            curve.values.iter().enumerate().map(|(at, value)| format!("{:.1},{:.1}", x(at), y(*value))).collect();
        let last = curve.values.last().copied().unwrap_or_default();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\">{} {last:.1}</text>",
            curve.colour,
            points.join(" "),
            x(curve.values.len().saturating_sub(1)) + 8.0,
            y(last) + 4.0,
            curve.colour,
            curve.name
        );
    }
}

/// The Markdown page. `picture` is the file name of the picture.
pub(crate) fn page(measured: &Measured, picture: &str, options: &Options) -> String {
    let Options { reads, cancels, disconnects, .. } = options;
    let mut page = format!(
        "# Soak\n\n\
         `cargo xtask soak --reads {reads} --svg docs/measurements/{picture}` made this page. It took {} s.\n\n\
         - Every answer was compared, byte by byte, with the expected one.\n\
         - A fifth of the reads were hostile. Each of those had to end with its own error.\n\
         - Meanwhile {cancels} endless calls were cancelled over stdio, and {disconnects} clients disconnected over HTTP.\n\n\
         Memory, descriptors and threads are those of two server processes, one on stdio and one on HTTP. They were read from \
         /proc half a second after each tenth.\n\
         \"slots\" is the memory that guests run in. A used slot keeps up to 2 MiB, so that the next call needs no page fault.\n\
         There are 32 slots. How many are in use at once varies by chance.\n\n\
         ![memory, descriptors, threads, latency]({picture})\n\n{HEAD}\n",
        measured.took.as_secs()
    );
    for (at, tenth) in measured.tenths.iter().enumerate() {
        let _ = writeln!(page, "{}", tenth.row(at + 1));
    }
    let _ = writeln!(page, "\n{}\n\nMemory, as bars:\n\n```text", measured.verdict().text);
    let most = measured.tenths.iter().flat_map(|tenth| tenth.samples).map(|sample| sample.memory).max().unwrap_or(1);
    for (at, tenth) in measured.tenths.iter().enumerate() {
        for (name, sample) in ["stdio", "HTTP "].iter().zip(tenth.samples) {
            let bar = "#".repeat(usize::try_from(sample.memory * 50 / most.max(1)).unwrap_or_default());
            let _ = writeln!(page, "{:>2} {name} {bar} {:.1} MiB", at + 1, mib(sample.memory));
        }
    }
    page.push_str("```\n");
    page
}
