//! The workflow that publishes a release: its YAML is valid, its actions are pinned, and its commands exist.

use std::fs;

use belljar_tests::places;
use saphyr_parser::{Event, Parser};

/// The scalars of the workflow, in their order.
fn scalars() -> Vec<String> {
    let path = places::repository().join(".github/workflows/release.yml");
    let text = fs::read_to_string(path).unwrap();
    let mut all = Vec::new();
    for event in Parser::new_from_str(&text) {
        if let (Event::Scalar(value, ..), _) = event.expect("the workflow is valid YAML") {
            all.push(value.into_owned());
        }
    }
    all
}

/// The values of a key.
fn values(key: &str) -> Vec<String> {
    let all = scalars();
    all.windows(2).filter(|pair| pair[0] == key).map(|pair| pair[1].clone()).collect()
}

#[test]
fn the_workflow_runs_for_tags_of_versions() {
    let all = scalars();
    for word in ["on", "push", "tags", "v*", "jobs", "steps"] {
        assert!(all.iter().any(|one| one == word), "the workflow lacks \"{word}\"");
    }
    let commands = values("run").join("\n");
    assert!(commands.contains("cargo xtask dist --namespace"), "{commands}");
}

#[test]
fn every_action_is_pinned_to_a_version() {
    let actions = values("uses");
    assert!(actions.len() >= 4, "{actions:?}");
    for action in actions {
        let version = action.rsplit_once('@').map(|(_, version)| version.trim_start_matches("release/"));
        let number = version.and_then(|version| version.strip_prefix('v'));
        assert!(number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit())), "{action}");
    }
}

#[test]
fn only_the_jobs_that_publish_get_a_token() {
    // A token of the workflow is the identity of trusted publishing. PyPI and npm need it, the build does not.
    let all = scalars();
    assert_eq!(all.iter().filter(|one| *one == "id-token").count(), 2);
    assert!(!all.iter().any(|one| one.contains("secrets.")), "trusted publishing needs no secret");
}
