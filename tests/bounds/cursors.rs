//! A cursor is this installation's own: it is believed by whoever has its key, after a restart too, and by nobody else; and
//! what was changed in it, in whichever way, is refused.

use belljar_tests::{Client, Era, Site, Wire};
use serde_json::{Value, json};

use crate::place::{kind, site};

const INVALID_PARAMS: i64 = -32602;

/// A list of several pages, a key of this site's own, and nothing that is compiled already.
fn cold(list_time: &str) -> Site {
    let mut site = site(&format!(
        "list-time = {list_time:?}\n[mounts.imp]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_LIST = \"large\" }}\n"
    ));
    for (name, own) in [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
        let own = site.path(own);
        site.env(name, own);
    }
    site
}

/// The same, compiled.
fn place() -> Site {
    let site = cold("3s");
    assert!(site.run(&["check"]).status.success());
    site
}

/// The page at `cursor`, or the first: its names, and the next cursor.
fn page<W: Wire>(client: &mut Client<W>, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    let page = client.request("resources/list", params).unwrap();
    let uris = page["resources"].as_array().unwrap().iter().map(|item| item["uri"].as_str().unwrap().to_owned());
    (uris.collect(), page["nextCursor"].as_str().map(str::to_owned))
}

fn refused<W: Wire>(client: &mut Client<W>, method: &str, cursor: &Value) {
    let answer = client.request(method, json!({ "cursor": cursor }));
    let error = answer.err().unwrap_or_else(|| panic!("{method} takes {cursor}"));
    assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-cursor"), "{method} {cursor}: {error}");
    assert!(error.message.contains("list again from the start"), "{error}");
}

#[test]
fn what_was_not_given_is_refused_in_both_eras_and_on_both_wires() {
    let site = place();
    let server = site.http();
    for era in Era::ALL {
        let mut stdio = site.stdio(era);
        let cursor = page(&mut stdio, None).1.expect("more than one page");
        forge(&mut stdio, &cursor);
        forge(&mut server.client(era), &cursor);
        // It is the alterations that were refused.
        assert!(!page(&mut stdio, Some(&cursor)).0.is_empty());
        assert!(stdio.close().status.success());
    }
}

/// Refuses `cursor` in every altered form.
fn forge<W: Wire>(client: &mut Client<W>, cursor: &str) {
    let middle = cursor.len() / 2;
    let mut altered: Vec<String> = Vec::new();
    for at in (0..cursor.len()).step_by(7).chain([cursor.len() - 2]) {
        let other = if cursor.as_bytes()[at] == b'A' { "B" } else { "A" };
        altered.push([&cursor[..at], other, &cursor[at + 1..]].concat());
    }
    altered.extend([
        cursor[..middle].to_owned(),
        cursor[middle..].to_owned(),
        cursor[1..].to_owned(),
        format!("{cursor}{cursor}"),
        format!("{cursor}AAAA"),
        format!("{cursor}="),
        format!(" {cursor}"),
        cursor.to_uppercase(),
        String::new(),
        "AAAA".to_owned(),
        "2".to_owned(),
        "\u{0}\u{202e}".to_owned(),
        "[\"imp\",\"100\",0,0,0,0]".to_owned(),
        "WyJpbXAiLG51bGwsMCwwLDAsMF0".to_owned(),
        "A".repeat(100_000),
    ]);
    for cursor in altered {
        refused(client, "resources/list", &json!(cursor));
    }
    // Genuine, and of the other list.
    refused(client, "resources/templates/list", &json!(cursor));
    for strange in [json!(5), json!({}), json!([]), json!(true)] {
        let answer = client.request("resources/list", json!({ "cursor": strange }));
        let error = answer.err().unwrap_or_else(|| panic!("{:?}: {strange} is taken for a cursor", client.era()));
        assert_eq!(error.code, INVALID_PARAMS, "{strange}: {error}");
    }
}

/// The walk goes on where it was, in another process, over the other wire.
#[test]
fn a_cursor_survives_a_restart() {
    let site = place();
    let mut client = site.stdio(Era::Modern);
    let (first, cursor) = page(&mut client, None);
    let whole = client.uris();
    assert!(client.close().status.success());

    let server = site.http();
    let mut client = server.client(Era::Older);
    let mut seen = first;
    let mut next = cursor;
    while let Some(cursor) = next {
        let (more, then) = page(&mut client, Some(&cursor));
        seen.extend(more);
        next = then;
    }
    assert_eq!(seen.len(), 10_001);
    assert_eq!(seen, whole);
}

#[test]
fn a_cursor_of_another_installation_is_refused() {
    let (one, two) = (place(), place());
    let cursor = page(&mut one.stdio(Era::Modern), None).1.unwrap();
    let mut client = two.stdio(Era::Modern);
    refused(&mut client, "resources/list", &json!(cursor));
    assert!(page(&mut client, None).1.is_some());
}

/// The mount that a cursor leads to may be gone: the walk goes on with the next one.
#[test]
fn a_cursor_into_a_mount_that_is_gone_goes_on_behind_it() {
    let site = place();
    site.mount_as("guest_imp", "zz.wasm");
    let mut client = site.stdio(Era::Modern);
    let cursor = page(&mut client, None).1.unwrap();
    client.close();
    std::fs::remove_file(site.path("plugins/imp.wasm")).unwrap();
    site.config("audit = \"audit.jsonl\"\n");
    let mut client = site.stdio(Era::Modern);
    let (uris, next) = page(&mut client, Some(&cursor));
    assert_eq!((uris, next), (vec!["belljar://zz/count".to_owned(), "belljar://zz/ok".to_owned()], None));
}

/// While components are still being compiled, a listing may be short of time, but not of entries: whoever goes on to its
/// end has seen all of them.
#[test]
fn a_walk_that_begins_before_everything_is_loaded_misses_nothing() {
    assert!(in_three(|| cold("1s").stdio(Era::Modern).uris().len() == 10_001));
}

/// Whether it is so in one of three times: on a machine that is busy, the list itself may take longer than it has.
fn in_three(mut is_so: impl FnMut() -> bool) -> bool {
    (0..3).any(|_| is_so())
}

/// Nor does a walk end early that is taken up again while its mount is still being compiled.
#[test]
fn a_cursor_into_a_mount_that_is_not_loaded_yet_loses_nothing() {
    assert!(in_three(|| {
        let site = cold("1s");
        assert!(site.run(&["check"]).status.success());
        let mut client = site.stdio(Era::Modern);
        let (first, cursor) = page(&mut client, None);
        client.close();
        std::fs::remove_dir_all(site.path("cache")).unwrap();
        let mut client = site.stdio(Era::Modern);
        let (mut seen, mut next) = (first, cursor);
        while let Some(cursor) = next {
            let (more, then) = page(&mut client, Some(&cursor));
            seen.extend(more);
            next = then;
        }
        seen.len() == 10_001
    }));
}
