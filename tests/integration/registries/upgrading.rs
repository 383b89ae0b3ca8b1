//! `belljar upgrade` and `belljar outdated`: newer versions, and what holds one back.

use std::fs;

use belljar_tests::{Era, Registry, Site};

use super::{NAME, TEXT, fails, release, start, succeeds, verified};

/// A site with version 1.0.0, and a registry that has it.
fn with_first() -> Option<(Site, Registry)> {
    let (site, registry) = start()?;
    registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    succeeds(&site, &["add", &registry.reference(NAME, "1.0.0"), "--unsigned", "--yes"]);
    Some((site, registry))
}

fn served(site: &Site) -> Vec<u8> {
    fs::read(site.path("plugins/tides.wasm")).expect("a component")
}

#[test]
fn a_newer_version_is_found_shown_and_served() {
    let Some((site, registry)) = with_first() else { return };
    let said = succeeds(&site, &["outdated"]);
    assert!(said.contains("1.0.0 is the newest"), "{said}");
    let (newer, preview) = (release("guest_fixture", "1.10.0"), release("guest_fixture", "2.0.0-rc.1"));
    for (tag, artifact) in [("1.9.0", &release("guest_fixture", "1.9.0")), ("1.10.0", &newer), ("2.0.0-rc.1", &preview)]
    {
        registry.push(NAME, tag, artifact);
    }
    registry.push(NAME, "latest", &preview);
    let said = fails(&site, &["outdated"]);
    assert!(said.contains("1.0.0 -> 1.10.0") && said.contains("upgrade tides"), "{said}");
    let before = served(&site);
    let said = succeeds(&site, &["upgrade", "tides", "--unsigned", "--dry-run"]);
    assert!(said.contains("version  1.10.0 (before: 1.0.0)"), "{said}");
    let fuel = said.lines().find(|line| line.trim_start().starts_with("fuel ")).expect("a line about fuel");
    assert!(fuel.matches("calls without grants").count() == 2 && !fuel.contains("not known"), "{fuel}");
    assert_eq!(served(&site), before, "a dry run changes nothing");
    succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert_eq!(served(&site), newer.component);
    assert_eq!(verified(&site)["standing"], "same");
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    let said = succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(said.contains("is up to date"), "{said}");
    // Back, by name.
    succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes", "--to", "1.0.0"]);
    assert_eq!(served(&site), before);
    assert_eq!(verified(&site)["reference"], registry.reference(NAME, "1.0.0").as_str());
}

/// Both versions are run without grants, and before the question. One that cannot be run is no obstacle.
#[test]
fn the_cost_of_calls_is_compared_and_blocks_nothing() {
    let Some((site, registry)) = with_first() else { return };
    registry.push(NAME, "1.1.0", &release("guest_fixture", "1.1.0"));
    let costs = |site: &Site| {
        let output = site.run(&["upgrade", "tides", "--unsigned", "--dry-run", "--json"]);
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one value");
        said["costs"].clone()
    };
    let found = costs(&site);
    assert!(found["new"]["fuel"].as_u64().expect("fuel") > 0, "{found}");
    assert_eq!(found["old"]["calls"], found["new"]["calls"], "the same component with another section");
    fs::remove_file(site.path("plugins/tides.wasm")).unwrap();
    let found = costs(&site);
    assert!(found["old"]["why"].as_str().expect("a reason").contains("there is no file"), "{found}");
    assert!(found["new"]["fuel"].is_u64(), "{found}");
    let said = succeeds(&site, &["upgrade", "tides", "--unsigned", "--yes", "--no-run"]);
    assert!(!said.contains("fuel  "), "{said}");
}

#[test]
fn a_new_import_holds_an_upgrade_back() {
    let Some((site, registry)) = with_first() else { return };
    let before = served(&site);
    registry.push(NAME, "1.1.0", &release("files", "1.1.0"));
    let said = fails(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(said.contains("imports that the old version does not have: ") && said.contains("--accept"), "{said}");
    assert_eq!(served(&site), before, "the old version is served");
    assert_eq!(verified(&site)["standing"], "same");
    let accept = said.lines().find_map(|line| line.split_once("To accept this: ")).expect("a command").1;
    let to = accept.split_whitespace().skip_while(|word| *word != "--to").nth(1).expect("a version");
    succeeds(&site, &["upgrade", "tides", "--to", to, "--accept", "--unsigned", "--yes"]);
    assert_ne!(served(&site), before);
}

#[test]
fn an_older_version_under_a_newer_tag_is_refused() {
    let Some((site, registry)) = with_first() else { return };
    registry.push(NAME, "1.1.0", &release("guest_fixture", "0.9.0"));
    let before = served(&site);
    let said = fails(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(said.contains("says that it is version 0.9.0") && said.contains("to go back, name the version"), "{said}");
    assert_eq!(served(&site), before);
}

/// A tag that moves changes nothing until the operator upgrades.
#[test]
fn a_moved_tag_is_an_upgrade_and_not_a_surprise() {
    let Some((site, registry)) = with_first() else { return };
    let (before, moved) = (served(&site), release("guest_fixture", "1.0.0+2"));
    registry.push(NAME, "1.0.0", &moved);
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    assert_eq!(served(&site), before);
    let said = succeeds(&site, &["upgrade", "tides", "--unsigned", "--dry-run"]);
    assert!(said.contains("old      sha256:") && said.contains("new      sha256:"), "{said}");
}
