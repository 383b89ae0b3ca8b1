//! The committed figures, and whether what was found is what they say.

use std::fmt::Write as _;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// The path that is none of belljar's.
const YARDSTICK: &str = "yardstick";

/// By how much in percent a figure may be off, where nobody has written another one.
const TOLERANCE: f64 = 3.0;

const HEADER: &str = "\
# What one run of each hot path costs. `cargo xtask test` fails where it costs more, and says where it costs less.
# `cargo xtask instructions --accept` writes the figures; the tolerances are for people to write.
#
# program      instructions in belljar, the engine and the guest
# library      instructions in the C library: how memory is found, and copied
# allocations  how often memory was asked for; exact
# bytes        how much of it
# tolerance    percent by which each but the allocations may be off
";

/// What one run of a path costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Figures {
    /// Instructions in belljar, the engine and the guest.
    pub(super) program: u64,
    /// Instructions in the C library.
    pub(super) library: u64,
    /// How often memory was asked for.
    pub(super) allocations: u64,
    /// How much of it.
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
    /// The same paths' tolerances with these figures.
    pub(super) fn accepting(&self, found: &[(String, Figures)]) -> Counts {
        let expected = |(name, figures): &(String, Figures)| {
            let tolerance = self.of(name).map_or(TOLERANCE, |expected| expected.tolerance);
            Expected { name: name.clone(), figures: *figures, tolerance }
        };
        Counts { path: found.iter().map(expected).collect() }
    }

    /// As it is committed.
    pub(super) fn to_text(&self) -> Result<String> {
        Ok(format!("{HEADER}\n{}", toml::to_string(self)?))
    }

    fn of(&self, name: &str) -> Option<&Expected> {
        self.path.iter().find(|expected| expected.name == name)
    }
}

/// What came of it.
pub(super) struct Judged {
    /// Every figure, for people.
    pub(super) table: String,
    /// What is dearer than expected, or cannot be compared, a line each.
    pub(super) wrong: Vec<String>,
    /// What is cheaper than expected, a line each: not wrong, but the next one could lose it again unseen.
    pub(super) cheaper: Vec<String>,
    /// How many figures were looked at.
    pub(super) figures: usize,
}

/// Compares what was found with what is expected.
///
/// The C library is the machine's. Where the yardstick, which is none of belljar's work, costs something else in it than where
/// the figures were accepted, that part of every path is measured by the yardstick, and less strictly by as much.
pub(super) fn judge(expected: &Counts, found: &[(String, Figures)]) -> Judged {
    let mut judged = Judged { table: String::new(), wrong: Vec::new(), cheaper: Vec::new(), figures: 0 };
    let yard = found.iter().find(|(name, _)| name == YARDSTICK).zip(expected.of(YARDSTICK));
    let scale = yard.map_or(1.0, |((_, found), expected)| ratio(found.library, expected.figures.library));
    let _ = writeln!(judged.table, "{:<26} {:<36} {:>12} {:>12}  ratio", "path", "figure", "expected", "found");
    for (name, figures) in found {
        let Some(expected) = expected.of(name) else {
            judged.wrong.push(format!("{name}: nothing is expected of it yet"));
            continue;
        };
        // The yardstick is not measured by itself; what it costs in the library may be anything.
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
            let told = format!("{name}: {now} {what}, where {then} are expected: {times:.3}x, with {by:.1} % allowed");
            match (times - 1.0) * 100.0 {
                more if more > by => judged.wrong.push(told),
                less if less < -by => judged.cheaper.push(told),
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
            "This C library counts otherwise than the one of the expected figures: {scale:.3}x for the same work. Its part is \
             measured by that."
        );
    }
    judged
}

/// `now` over `then`; one where both are nothing.
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
    fn what_is_as_expected_or_nearly_so_is_right() {
        assert_eq!(wrong(READ, YARD), Vec::<String>::new());
        let nearly = judged(Figures { program: 50_900, library: 9_850, bytes: 20_300, ..READ }, YARD);
        assert!(nearly.wrong.is_empty() && nearly.cheaper.is_empty());
    }

    #[test]
    fn each_figure_is_found_out_when_it_grows_and_told_when_it_shrinks() {
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
            let told = wrong(read, YARD);
            assert!(told.len() == 1 && told[0].contains(named), "{told:?}");
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
    fn another_c_library_is_measured_by_the_yardstick_and_the_program_is_not() {
        let yard = Figures { library: 8_800, ..YARD };
        let (as_much, twice) = (Figures { library: 11_000, ..READ }, Figures { library: 20_000, ..READ });
        assert_eq!(wrong(as_much, yard), Vec::<String>::new());
        assert_eq!(wrong(as_much, YARD).len(), 1, "with the same library it is dearer");
        assert_eq!(wrong(twice, yard).len(), 1);
        assert_eq!(wrong(Figures { program: 55_000, ..as_much }, yard).len(), 1);
    }

    #[test]
    fn a_path_that_is_new_or_gone_is_told() {
        let expected = Counts::default().accepting(&found(READ, YARD));
        let other = [(YARDSTICK.to_owned(), YARD), ("other".to_owned(), READ)];
        let told = judge(&expected, &other).wrong;
        assert_eq!(told, ["other: nothing is expected of it yet", "read: it was not counted"]);
        assert!(judge(&Counts::default(), &[]).wrong.is_empty());
    }

    #[test]
    fn what_is_accepted_is_expected_and_tolerances_stay() {
        let mut counts = Counts::default().accepting(&found(READ, YARD));
        counts.path[1].tolerance = 0.5;
        let dearer = Figures { program: 50_500, allocations: 90, ..READ };
        assert_eq!(judge(&counts, &found(dearer, YARD)).wrong.len(), 2);
        let text = counts.accepting(&found(dearer, YARD)).to_text().unwrap();
        let again: Counts = toml::from_str(&text).unwrap();
        assert!(judge(&again, &found(dearer, YARD)).wrong.is_empty());
        assert_eq!(again.path[1].tolerance.to_string(), "0.5");
        assert!(text.starts_with("# What one run"));
    }
}
