//! Names, files and bases of mounts, without loading components.

use super::*;
use crate::config::ConfigInput;

fn planned(files: &[&str], text: &str) -> (Vec<(String, String, String)>, Vec<RefusedMount>) {
    let config =
        Config::read(ConfigInput { file: Some(("/x/belljar.toml".into(), text.to_owned())), ..ConfigInput::default() })
            .unwrap();
    let (plans, refused) = plan_mounts(files.iter().map(|&f| f.to_owned()).collect(), &config);
    (plans.into_iter().map(|p| (p.name.to_string(), p.file, p.base)).collect(), refused)
}

fn is(name: &str, file: &str, base: &str) -> (String, String, String) {
    (name.to_owned(), file.to_owned(), base.to_owned())
}

#[test]
fn names_come_from_stems() {
    let (plans, refused) = planned(&["My_Notes.wasm", "clock.wasm", "file.wasm"], "");
    assert_eq!(
        plans,
        [
            is("clock", "clock.wasm", "belljar://clock/"),
            is("file", "file.wasm", "belljar://file/"),
            is("my-notes", "My_Notes.wasm", "belljar://my-notes/")
        ]
    );
    assert!(refused.is_empty());
}

#[test]
fn bad_names_and_collisions_are_reported_with_the_cure() {
    let (plans, refused) = planned(&["é.wasm", "a.wasm", "A.wasm", "a b.wasm", ".wasm", "-.wasm"], "");
    assert_eq!(
        plans,
        [is("a", "A.wasm", "belljar://a/")],
        "the first in byte order wins, whatever the directory's order"
    );
    assert_eq!(refused.len(), 5);
    assert!(refused.iter().any(|r| r.name == "a.wasm" && r.reason.contains("taken by \"A.wasm\"")));
    assert!(refused.iter().any(|r| r.name == "a b.wasm" && r.reason.contains("[mounts.NAME] component = ")));
}

#[test]
fn a_component_with_configured_mounts_is_not_mounted_under_its_own_name() {
    let text = "[mounts.notes]\ncomponent = 'files.wasm'\n[mounts.docs]\ncomponent = 'files.wasm'\nuri = 'docs:///'";
    let (plans, _) = planned(&["files.wasm", "clock.wasm"], text);
    assert_eq!(
        plans,
        [
            is("clock", "clock.wasm", "belljar://clock/"),
            is("docs", "files.wasm", "docs:///"),
            is("notes", "files.wasm", "belljar://notes/")
        ]
    );
}

#[test]
fn a_mount_uses_the_file_whose_stem_gives_its_name() {
    let (plans, _) = planned(&["My_Notes.wasm"], "[mounts.my-notes]\nuri = 'n://'");
    assert_eq!(plans, [is("my-notes", "My_Notes.wasm", "n://")]);
    let (_, refused) = planned(&[], "[mounts.gone]");
    assert!(refused[0].reason.contains("there is no \"gone.wasm\""));
}

#[test]
fn equal_bases_are_refused_for_the_later_mount() {
    let (plans, refused) = planned(&["a.wasm", "b.wasm"], "[mounts.b]\nuri = 'belljar://a/'");
    assert_eq!(plans, [is("a", "a.wasm", "belljar://a/")]);
    assert!(refused[0].reason.contains("taken by mount \"a\""));
}
