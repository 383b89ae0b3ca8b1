//! The checks that are expected to fail, and why.

use std::collections::BTreeSet;

/// The file, taken apart.
pub(crate) struct Expected {
    /// Its lines.
    pub(crate) lines: Vec<Line>,
}

/// One check that is expected to fail.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    /// The suite's release line.
    pub(crate) suite: String,
    /// The revision of the protocol it is run at.
    pub(crate) revision: String,
    /// The scenario.
    pub(crate) scenario: String,
    /// The check's id.
    pub(crate) check: String,
}

impl Expected {
    /// Reads `expected-failures.txt`.
    pub(crate) fn read() -> Expected {
        Expected::parse(include_str!("expected-failures.txt"))
    }

    /// `suite revision scenario check reason...`, a line each; `#` begins a comment line. A line without a reason panics.
    fn parse(text: &str) -> Expected {
        let meant = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let line = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            let [suite, revision, scenario, check, _, ..] = words.as_slice() else {
                panic!("an expected failure without a reason: {line:?}")
            };
            Line { suite: suite.clone(), revision: revision.clone(), scenario: scenario.clone(), check: check.clone() }
        };
        Expected { lines: meant.map(line).collect() }
    }

    /// The checks of one scenario that are expected to fail.
    pub(crate) fn of(&self, suite: &str, revision: &str, scenario: &str) -> BTreeSet<String> {
        let same = |line: &&Line| line.suite == suite && line.revision == revision && line.scenario == scenario;
        self.lines.iter().filter(same).map(|line| line.check.clone()).collect()
    }
}

#[test]
fn lines_are_found_by_their_scenario() {
    let expected = Expected::parse("# why\n\n0.2 2026-07-28 caching a-check  it cannot pass\n0.2 2026-07-28 ping b no");
    assert_eq!(expected.of("0.2", "2026-07-28", "caching"), ["a-check".to_owned()].into());
    assert!(expected.of("0.1", "2026-07-28", "caching").is_empty());
}

#[test]
#[should_panic(expected = "without a reason")]
fn a_line_needs_a_reason() {
    Expected::parse("0.2 2026-07-28 caching a-check");
}
