//! Compares counted figures with the committed ones.

use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// A path that runs no code of belljar: it measures the C library of the machine.
const YARDSTICK: &str = "yardstick";

/// Default tolerance of a figure, in percent.
const TOLERANCE: f64 = 3.0;

const HEADER: &str = "\
# The cost of one run of each hot path. `cargo xtask test` fails if a path costs more, and prints the paths that cost less.
# `cargo xtask instructions --accept` writes the figures. People write the tolerances. The profile is `tested`, of Cargo.toml.
#
# program      instructions in belljar, the engine and the guest
# library      instructions in the C library: allocation and copying
# allocations  number of allocations; exact
# bytes        bytes allocated
# tolerance    allowed difference in percent, for all figures but the allocations
";

/// The cost of one run of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Figures {
    /// Instructions in belljar, the engine and the guest.
    pub(super) program: u64,
    /// Instructions in the C library.
    pub(super) library: u64,
    /// Number of allocations.
    pub(super) allocations: u64,
    /// Bytes allocated.
    pub(super) bytes: u64,
}

/// A path's figures and tolerance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Expected {
    name: String,
    #[serde(flatten)]
    figures: Figures,
    tolerance: f64,
}

/// The committed file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counts {
    #[serde(default)]
    path: Vec<Expected>,
}

impl Counts {
    /// These figures, with the tolerances of the same paths.
    pub(super) fn accepting(&self, found: &[(String, Figures)]) -> Counts {
        let expected = |(name, figures): &(String, Figures)| {
            let tolerance = self.of(name).map_or(TOLERANCE, |expected| expected.tolerance);
            Expected { name: name.clone(), figures: *figures, tolerance }
        };
        Counts { path: found.iter().map(expected).collect() }
    }

    /// The text of the committed file.
    pub(super) fn to_text(&self) -> Result<String> {
        Ok(format!("{HEADER}\n{}", toml::to_string(self)?))
    }

    fn of(&self, name: &str) -> Option<&Expected> {
        self.path.iter().find(|expected| expected.name == name)
    }
}

/// The result of a comparison.
pub(super) struct Judged {
    /// A table of every figure.
    pub(super) table: String,
    /// One line for each figure that is higher than expected or cannot be compared.
    pub(super) wrong: Vec<String>,
    /// One line for each figure that is lower than expected. Not an error, but a later change could lose the gain unnoticed.
    pub(super) cheaper: Vec<String>,
    /// Number of compared figures.
    pub(super) figures: usize,
}

/// Compares the counted figures with the expected ones.
///
/// Each machine has another C library. The yardstick runs the same work with both: its ratio is the cost of this C library to
/// the cost of the one of the expected figures. The library's figure of every path is scaled by that ratio, and its tolerance
/// grows by the difference.
pub(super) fn judge(expected: &Counts, found: &[(String, Figures)]) -> Judged {
    let mut judged = Judged { table: String::new(), wrong: Vec::new(), cheaper: Vec::new(), figures: 0 };
    let yard = found.iter().find(|(name, _)| name == YARDSTICK).zip(expected.of(YARDSTICK));
    let scale = yard.map_or(1.0, |((_, found), expected)| ratio(found.library, expected.figures.library));
    let _ = writeln!(judged.table, "{:<26} {:<36} {:>12} {:>12}  ratio", "path", "figure", "expected", "found");
    for (name, figures) in found {
        let Some(expected) = expected.of(name) else {
            judged.wrong.push(format!("{name}: no figures are committed for this path"));
            continue;
        };
        // The yardstick's own figure for the library is never wrong: it defines the scale.
        let off = if name == YARDSTICK { f64::INFINITY } else { (scale - 1.0).abs() * 100.0 };
        let (by, then, now) = (expected.tolerance, expected.figures, *figures);
        for (what, then, now, scale, by) in [
            ("instructions in the program", then.program, now.program, 1.0, by),
            ("instructions in the C library", then.library, now.library, scale, by + off),
            ("allocations", then.allocations, now.allocations, 1.0, 0.0),
            ("bytes allocated", then.bytes, now.bytes, 1.0, by),
        ] {
            judged.figures += 1;
            let times = ratio(now, then) / scale;
            let _ = writeln!(judged.table, "{name:<26} {what:<36} {then:>12} {now:>12}  {times:.4}x");
            let message =
                format!("{name}: {now} {what}, where {then} are expected: {times:.3}x, with {by:.1} % allowed");
            match (times - 1.0) * 100.0 {
                more if more > by => judged.wrong.push(message),
                less if less < -by => judged.cheaper.push(message),
                _ => {}
            }
        }
    }
    let is_found = |expected: &&Expected| found.iter().any(|(name, _)| *name == expected.name);
    let gone = expected.path.iter().filter(|expected| !is_found(expected));
    judged.wrong.extend(gone.map(|expected| format!("{}: it was not counted", expected.name)));
    if (scale - 1.0).abs() > 0.005 {
        let _ = writeln!(
            judged.table,
            "This C library needs {scale:.3}x the instructions of the one of the expected figures, for the same work. The \
             expected figures are scaled by that."
        );
    }
    judged
}

/// A table of what each feature costs: the instructions of a path with it over those of the path without it. The name of one
/// is that of the other, a comma, and the feature.
pub(super) fn features(found: &[(String, Figures)]) -> String {
    let mut table = String::from("what a feature costs, in instructions of the counted thread\n");
    for (name, with) in found {
        let base = found.iter().find_map(|(base, figures)| {
            let feature = name.strip_prefix(base.as_str())?.strip_prefix(", ")?;
            feature.starts_with("with").then_some((figures, base, feature))
        });
        if let Some((without, base, feature)) = base {
            let times = ratio(with.program + with.library, without.program + without.library);
            let _ = writeln!(table, "{base:<26} {feature:<36} {times:.4}x");
        }
    }
    table
}

/// The lower of both counts of each figure. Paths that only `more` has are left out.
pub(super) fn lower(found: &[(String, Figures)], more: &[(String, Figures)]) -> Vec<(String, Figures)> {
    let other = |name: &str| more.iter().find(|(other, _)| other == name).map(|(_, figures)| *figures);
    let lower = |(name, one): &(String, Figures)| {
        let two = other(name).unwrap_or(*one);
        let figures = Figures {
            program: one.program.min(two.program),
            library: one.library.min(two.library),
            allocations: one.allocations.min(two.allocations),
            bytes: one.bytes.min(two.bytes),
        };
        (name.clone(), figures)
    };
    found.iter().map(lower).collect()
}

/// `now` divided by `then`; 1 if both are equal.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn ratio(now: u64, then: u64) -> f64 {
    if now == then { 1.0 } else { now as f64 / then as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Figures = Figures { program: 50_000, library: 10_000, allocations: 80, bytes: 20_000 };
    const YARD: Figures = Figures { program: 3_000, library: 8_000, allocations: 20, bytes: 300_000 };

    fn found(read: Figures, yard: Figures) -> Vec<(String, Figures)> {
        vec![(YARDSTICK.to_owned(), yard), ("read".to_owned(), read)]
    }

    fn judged(read: Figures, yard: Figures) -> Judged {
        judge(&Counts::default().accepting(&found(READ, YARD)), &found(read, yard))
    }

    fn wrong(read: Figures, yard: Figures) -> Vec<String> {
        judged(read, yard).wrong
    }

    #[test]
    fn a_feature_is_compared_with_the_path_without_it() {
        let path = |name: &str, program| (name.to_owned(), Figures { program, library: 0, ..READ });
        let found = [path("read, 1 KiB", 1000), path("read, 1 KiB, with rules", 1050), path("read", 7)];
        assert_eq!(features(&found).lines().skip(1).collect::<Vec<_>>().len(), 1);
        assert!(features(&found).contains("1.0500x"), "{}", features(&found));
    }

    #[test]
    fn a_figure_within_the_tolerance_is_right() {
        assert_eq!(wrong(READ, YARD), Vec::<String>::new());
        let nearly = judged(Figures { program: 50_900, library: 9_850, bytes: 20_300, ..READ }, YARD);
        assert!(nearly.wrong.is_empty() && nearly.cheaper.is_empty());
    }

    #[test]
    fn a_figure_that_is_higher_in_one_of_two_counts_is_right() {
        let expected = Counts::default().accepting(&found(READ, YARD));
        let dearer = |read| found(Figures { program: 51_600, ..read }, YARD);
        assert!(judge(&expected, &lower(&dearer(READ), &found(READ, YARD))).wrong.is_empty());
        assert!(judge(&expected, &lower(&found(READ, YARD), &dearer(READ))).wrong.is_empty());
        assert_eq!(judge(&expected, &lower(&dearer(READ), &dearer(READ))).wrong.len(), 1);
    }

    #[test]
    fn a_higher_figure_is_wrong_and_a_lower_one_is_reported() {
        for (read, named) in [
            (
                Figures { program: 51_600, ..READ },
                "51600 instructions in the program, where 50000 are expected: 1.032x",
            ),
            (Figures { library: 10_400, ..READ }, "10400 instructions in the C library"),
            // One clone of a kilobyte.
            (Figures { allocations: 81, ..READ }, "81 allocations, where 80"),
            (Figures { bytes: 21_024, ..READ }, "21024 bytes allocated"),
        ] {
            let messages = wrong(read, YARD);
            assert!(messages.len() == 1 && messages[0].contains(named), "{messages:?}");
        }
        for read in [
            Figures { program: 48_000, ..READ },
            Figures { library: 9_000, ..READ },
            Figures { allocations: 79, ..READ },
            Figures { bytes: 19_000, ..READ },
        ] {
            let Judged { wrong, cheaper, .. } = judged(read, YARD);
            assert!(wrong.is_empty() && cheaper.len() == 1, "{cheaper:?}");
        }
    }

    #[test]
    fn the_yardstick_scales_the_c_library_and_not_the_program() {
        let yard = Figures { library: 8_800, ..YARD };
        let (as_much, twice) = (Figures { library: 11_000, ..READ }, Figures { library: 20_000, ..READ });
        assert_eq!(wrong(as_much, yard), Vec::<String>::new());
        assert_eq!(wrong(as_much, YARD).len(), 1, "the figure is too high if the C library is the same");
        assert_eq!(wrong(twice, yard).len(), 1);
        assert_eq!(wrong(Figures { program: 55_000, ..as_much }, yard).len(), 1);
    }

    #[test]
    fn a_new_or_missing_path_is_reported() {
        let expected = Counts::default().accepting(&found(READ, YARD));
        let other = [(YARDSTICK.to_owned(), YARD), ("other".to_owned(), READ)];
        let messages = judge(&expected, &other).wrong;
        assert_eq!(messages, ["other: no figures are committed for this path", "read: it was not counted"]);
        assert!(judge(&Counts::default(), &[]).wrong.is_empty());
    }

    #[test]
    fn accepting_replaces_the_figures_and_keeps_the_tolerances() {
        let mut counts = Counts::default().accepting(&found(READ, YARD));
        counts.path[1].tolerance = 0.5;
        let dearer = Figures { program: 50_500, allocations: 90, ..READ };
        assert_eq!(judge(&counts, &found(dearer, YARD)).wrong.len(), 2);
        let text = counts.accepting(&found(dearer, YARD)).to_text().unwrap();
        let again: Counts = toml::from_str(&text).unwrap();
        assert!(judge(&again, &found(dearer, YARD)).wrong.is_empty());
        assert_eq!(again.path[1].tolerance.to_string(), "0.5");
        assert!(text.starts_with("# The cost of one run"));
    }
}
