//! Reads `expected-failures.txt`: the checks of the conformance suites that cannot pass, each with the reason.

use std::collections::BTreeSet;

/// The parsed file.
pub(crate) struct Expected {
    /// One entry for each check that is expected to fail.
    pub(crate) lines: Vec<Line>,
}

/// One check that is expected to fail.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    /// The release line of the suite.
    pub(crate) suite: String,
    /// The protocol revision at which the scenario runs.
    pub(crate) revision: String,
    /// The name of the scenario.
    pub(crate) scenario: String,
    /// The id of the check.
    pub(crate) check: String,
}

impl Expected {
    /// Reads `expected-failures.txt`.
    pub(crate) fn read() -> Expected {
        Expected::parse(include_str!("expected-failures.txt"))
    }

    /// Parses lines of the form `suite revision scenario check reason...`. `#` begins a comment line. Panics at a line without a
    /// reason.
    fn parse(text: &str) -> Expected {
        let entries = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let line = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            let [suite, revision, scenario, check, _, ..] = words.as_slice() else {
                panic!("an expected failure without a reason: {line:?}")
            };
            Line { suite: suite.clone(), revision: revision.clone(), scenario: scenario.clone(), check: check.clone() }
        };
        Expected { lines: entries.map(line).collect() }
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
