//! Draws the table of all servers. Each server has a bar: its processor time, divided by the processor time of belljar.

use std::error::Error;

use belljar_figures::{Record, Run, verdict::names};
use plotters::prelude::*;

/// The groups in the picture, from the top.
const GROUPS: [&str; 8] = [
    "HTTP, 1 KiB text",
    "HTTP, 1 KiB text, 16 clients",
    "HTTP, 1 MiB text",
    "HTTP, 4 KiB file",
    "HTTP, list of 100",
    "stdio, 1 KiB text",
    "stdio, 1 MiB text",
    "stdio, 4 KiB file",
];

const COLOURS: [(&str, RGBColor); 7] = [
    (names::BELLJAR, RGBColor(31, 111, 235)),
    (names::UNISOLATED, RGBColor(84, 174, 255)),
    (names::NATIVE, RGBColor(139, 148, 158)),
    (names::FASTMCP, RGBColor(209, 87, 11)),
    (names::SDK, RGBColor(46, 160, 67)),
    (names::EVERYTHING, RGBColor(130, 80, 223)),
    (names::FILESYSTEM, RGBColor(191, 57, 137)),
];

/// The width of the picture, in pixels.
const WIDTH: u32 = 860;

/// The height of a bar, in pixels.
const BAR: u32 = 18;

/// The height of a group's title, in pixels.
const TITLE: u32 = 26;

/// The height of the upper and lower edges together, in pixels.
const EDGES: u32 = 90;

/// A line of the picture, from the top.
enum Line {
    Title(String),
    Bar { name: String, ratio: f64, colour: RGBColor },
}

fn lines(record: &Record) -> Vec<Line> {
    let mut all = Vec::new();
    for group in GROUPS {
        let ours = record.find(group, names::BELLJAR).or_else(|| record.find(group, names::UNISOLATED));
        let Some(ours) = ours else { continue };
        all.push(Line::Title(format!("{group} (belljar: {:.0} us)", ours.median)));
        for row in record.group(group) {
            let colour = COLOURS.iter().find(|(name, _)| *name == row.row).map_or(BLACK, |(_, colour)| *colour);
            all.push(Line::Bar { name: row.row.clone(), ratio: row.over(ours).value, colour });
        }
    }
    all
}

/// Draws the figures of a run as SVG.
///
/// # Errors
/// If plotters cannot draw the picture.
pub fn svg(run: &Run) -> Result<String, Box<dyn Error>> {
    let lines = lines(&run.record);
    let height = lines.iter().map(|line| if matches!(line, Line::Title(_)) { TITLE } else { BAR }).sum::<u32>();
    let most = lines.iter().filter_map(|line| if let Line::Bar { ratio, .. } = line { Some(*ratio) } else { None });
    let most = most.fold(2.0_f64, f64::max) * 2.0;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height + EDGES)).into_drawing_area();
        root.fill(&WHITE)?;
        let caption = format!("processor time of the server for one request, belljar = 1, {}", run.date);
        let mut chart = ChartBuilder::on(&root)
            .caption(caption, ("sans-serif", 17))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(190)
            .build_cartesian_2d((0.2..most).log_scale(), f64::from(height)..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(8)
            .x_label_formatter(&|ratio| format!("{ratio}x"))
            .label_style(("sans-serif", 12))
            .draw()?;
        let area = chart.plotting_area();
        let mut top = 0.0;
        for line in lines {
            match line {
                Line::Title(title) => {
                    let style = ("sans-serif", 13).into_font().style(FontStyle::Bold).color(&BLACK);
                    let (x, y) = area.map_coordinate(&(0.2, top + 9.0));
                    root.draw(&Text::new(title, (x - 185, y), style))?;
                    top += f64::from(TITLE);
                }
                Line::Bar { name, ratio, colour } => {
                    let (from, to) = (top + 2.0, top + f64::from(BAR) - 2.0);
                    area.draw(&Rectangle::new([(1.0, from), (ratio, to)], colour.filled()))?;
                    let small = ("sans-serif", 12).into_font().color(&BLACK);
                    let (x, y) = area.map_coordinate(&(0.2, from));
                    root.draw(&Text::new(name, (x - 175, y + 1), small.clone()))?;
                    let (x, y) = area.map_coordinate(&(ratio.max(1.0), from));
                    root.draw(&Text::new(format!("{ratio:.2}x"), (x + 5, y + 1), small))?;
                    top += f64::from(BAR);
                }
            }
        }
        root.present()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_has_a_bar() {
        let mut record = Record::new();
        for (at, (name, _)) in COLOURS.iter().enumerate() {
            record.row("HTTP, 4 KiB file", name, "us", &[f64::from(u32::try_from(at).unwrap()) * 50.0 + 50.0]);
        }
        let svg = svg(&Run { record, ..Run::default() }).unwrap();
        assert!(COLOURS.iter().all(|(name, _)| svg.contains(name)) && svg.contains("6.00x"), "{svg}");
    }

    /// `bench.svg` in the documents shows the figures of `bench.json`.
    #[test]
    fn the_published_picture_shows_the_published_run() {
        let docs = belljar_tests::places::repository().join("docs/measurements");
        let run: Run = belljar_figures::read(&docs.join("bench.json")).unwrap();
        let drawn = std::fs::read_to_string(docs.join("bench.svg")).unwrap();
        assert!(
            svg(&run).unwrap() == drawn,
            "docs/measurements/bench.svg is out of date: run \"cargo xtask bench --redraw\""
        );
    }
}
