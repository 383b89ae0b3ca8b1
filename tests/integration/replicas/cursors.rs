//! Lists that are walked over several replicas.

use std::collections::BTreeSet;

use belljar_tests::Site;
use serde_json::{Value, json};

use super::Group;

/// Three pages of entries and a half.
const FILES: usize = 3500;

const FILES_COMPONENT: &[(&str, &str)] = &[("files", "files.wasm")];

const CONFIG: &str = "[mounts.files]\nfs = { \"/\" = \"{shared}notes\" }\n";

fn write_files(shared: &Site) {
    for at in 0..FILES {
        shared.write(format!("notes/{at:05}.md"), "");
    }
}

/// A page of the list from the replica `at`.
fn page(group: &Group, at: usize, cursor: Option<&Value>) -> Result<Value, belljar_tests::RpcError> {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    group.client(at % group.replicas.len()).request("resources/list", params)
}

#[test]
fn a_walk_over_three_replicas_is_complete_and_has_no_duplicate() {
    let Some(group) = Group::start(3, FILES_COMPONENT, CONFIG, write_files) else { return };
    let (mut seen, mut entries, mut cursor, mut at) = (BTreeSet::new(), 0, None, 0);
    loop {
        let page = page(&group, at, cursor.as_ref()).unwrap();
        for entry in page["resources"].as_array().unwrap() {
            entries += 1;
            seen.insert(entry["uri"].as_str().unwrap().to_owned());
        }
        at += 1;
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!((entries, seen.len()), (FILES, FILES));
    assert!(at >= 4, "one replica gave nearly all: {at} pages");
}

#[test]
fn a_cursor_of_another_list_is_refused() {
    let Some(mut group) = Group::start(2, FILES_COMPONENT, CONFIG, write_files) else { return };
    let first = page(&group, 0, None).unwrap();
    let cursor = first["nextCursor"].clone();
    // The second replica has not listed yet. It will find another list: one entry more, before the cursor.
    group.shared.write("notes/00000a.md", "");
    let refused = page(&group, 1, Some(&cursor)).unwrap_err();
    assert_eq!(refused.code, -32602, "{refused}");
    assert!(refused.message.contains("a list that has changed; list again from the start"), "{refused}");
    assert_eq!(refused.data["kind"], "bad-cursor");
    // A replica with another version of the mount has another list, whatever its entries are.
    let other = group.replica(FILES_COMPONENT, &format!("{CONFIG}env = {{ TITLE = \"Other\" }}\n"));
    group.replicas.push(other);
    assert_eq!(page(&group, 2, Some(&cursor)).unwrap_err().code, -32602);
    // Where it was given, it goes on.
    assert!(page(&group, 0, Some(&cursor)).is_ok());
}

#[test]
fn the_pages_of_a_tool_are_checked_too() {
    let Some(group) = Group::start(2, FILES_COMPONENT, CONFIG, write_files) else { return };
    let call = |at: usize, arguments: Value| {
        group.client(at).request("tools/call", json!({ "name": "list_resources", "arguments": arguments })).unwrap()
    };
    let first = call(0, json!({ "limit": 20 }));
    let text = |answer: &Value| answer["content"][0]["text"].as_str().unwrap().to_owned();
    let cursor_of = |answer: &Value| {
        let text = text(answer);
        text.lines().find_map(|line| line.strip_prefix("nextCursor: ")).expect("a cursor").to_owned()
    };
    let next = call(1, json!({ "limit": 20, "cursor": cursor_of(&first) }));
    let shown = text(&next);
    assert!(shown.contains("belljar://files/00020.md") && !shown.contains("/00019.md"), "{shown}");
    group.shared.write("notes/00000a.md", "");
    let third = cursor_of(&next);
    let changed = belljar_tests::wait_until("the changed list", || {
        let answer = call(0, json!({ "limit": 20, "cursor": third }));
        if answer.to_string().contains("a list that has changed") { Ok(answer) } else { Err(answer) }
    });
    assert_eq!(changed["isError"], true, "{changed}");
}
