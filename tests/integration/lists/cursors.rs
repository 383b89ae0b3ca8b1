//! Cursors of the real server. An installation authenticates its cursors with its key. So it accepts them after a
//! restart, and refuses changed cursors and cursors of another installation.

use belljar_tests::{Client, Era, Site, Wire, wait_until};
use serde_json::{Value, json};

use crate::support::{kind, site};

const INVALID_PARAMS: i64 = -32602;

/// A site with a list of several pages, its own key, and no compiled code.
fn uncompiled_site(list_time: &str) -> Site {
    let mut site = site(&format!(
        "list-time = {list_time:?}\n[mounts.hostile]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_LIST = \"large\" }}\n\
         [mounts.hostile.limits]\ntime = \"60s\"\n"
    ));
    for (name, own) in [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
        let own = site.path(own);
        site.env(name, own);
    }
    site
}

/// The same site with compiled code.
fn compiled_site() -> Site {
    let site = uncompiled_site("60s");
    assert!(site.run(&["check"]).status.success());
    site
}

/// Fetches the page at `cursor`, or the first page. Returns its URIs, and the next cursor.
fn page<W: Wire>(client: &mut Client<W>, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    let page = client.request("resources/list", params).unwrap();
    let uris = page["resources"].as_array().unwrap().iter().map(|item| item["uri"].as_str().unwrap().to_owned());
    (uris.collect(), page["nextCursor"].as_str().map(str::to_owned))
}

/// Asserts that the server refuses a cursor.
fn assert_refused<W: Wire>(client: &mut Client<W>, method: &str, cursor: &Value) {
    let answer = client.request(method, json!({ "cursor": cursor }));
    let error = answer.err().unwrap_or_else(|| panic!("{method} accepts {cursor}"));
    assert_eq!((error.code, kind(&error)), (INVALID_PARAMS, "bad-cursor"), "{method} {cursor}: {error}");
    assert!(error.message.contains("list again from the start"), "{error}");
}

#[test]
fn changed_cursors_are_refused_in_both_eras_over_both_transports() {
    let site = compiled_site();
    let server = site.http();
    for era in Era::ALL {
        let mut stdio = site.stdio(era);
        let cursor = page(&mut stdio, None).1.expect("more than one page");
        assert_changes_are_refused(&mut stdio, &cursor);
        // A client over HTTP is another principal.
        let mut http = server.client(era);
        let own = page(&mut http, None).1.expect("more than one page");
        assert_refused(&mut http, "resources/list", &json!(cursor));
        assert_changes_are_refused(&mut http, &own);
        // The server accepts the unaltered cursor. So it refused the others because of the alterations.
        assert!(!page(&mut stdio, Some(&cursor)).0.is_empty());
        assert!(stdio.close().status.success());
    }
}

/// Asserts that every altered form of `cursor` is refused.
fn assert_changes_are_refused<W: Wire>(client: &mut Client<W>, cursor: &str) {
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
        "[\"hostile\",\"100\",0,0,0,0]".to_owned(),
        "WyJpbXAiLG51bGwsMCwwLDAsMF0".to_owned(),
        "A".repeat(100_000),
    ]);
    for cursor in altered {
        assert_refused(client, "resources/list", &json!(cursor));
    }
    // A valid cursor of another list.
    assert_refused(client, "resources/templates/list", &json!(cursor));
    // Values that are no strings.
    for wrong in [json!(5), json!({}), json!([]), json!(true)] {
        let answer = client.request("resources/list", json!({ "cursor": wrong }));
        let error = answer.err().unwrap_or_else(|| panic!("{:?}: {wrong} is accepted as a cursor", client.era()));
        assert_eq!(error.code, INVALID_PARAMS, "{wrong}: {error}");
    }
}

/// A client can continue a list with its cursor in another process and in the other era. A client over HTTP is another
/// principal, and its cursor is another one.
#[test]
fn a_cursor_survives_a_restart() {
    let site = compiled_site();
    let mut client = site.stdio(Era::Stateless);
    let (first, cursor) = page(&mut client, None);
    let complete = client.uris();
    assert!(client.close().status.success());

    let server = site.http();
    assert_refused(&mut server.client(Era::Session), "resources/list", &json!(cursor));
    drop(server);
    let mut client = site.stdio(Era::Session);
    let mut seen = first;
    let mut next = cursor;
    while let Some(cursor) = next {
        let (more, following) = page(&mut client, Some(&cursor));
        seen.extend(more);
        next = following;
    }
    assert_eq!(seen.len(), 10_001);
    assert_eq!(seen, complete);
}

#[test]
fn a_cursor_of_another_installation_is_refused() {
    let (one, two) = (compiled_site(), compiled_site());
    let cursor = page(&mut one.stdio(Era::Stateless), None).1.unwrap();
    let mut client = two.stdio(Era::Stateless);
    assert_refused(&mut client, "resources/list", &json!(cursor));
    assert!(page(&mut client, None).1.is_some());
}

/// If the mount of a cursor was removed, the list continues with the next mount.
#[test]
fn a_cursor_into_a_removed_mount_continues_with_the_next_mount() {
    let site = compiled_site();
    site.mount_as("guest_hostile", "zz.wasm");
    let mut client = site.stdio(Era::Stateless);
    let cursor = page(&mut client, None).1.unwrap();
    client.close();
    std::fs::remove_file(site.path("plugins/hostile.wasm")).unwrap();
    site.config("audit = \"audit.jsonl\"\n");
    let mut client = site.stdio(Era::Stateless);
    let (uris, next) = page(&mut client, Some(&cursor));
    assert_eq!((uris, next), (vec!["belljar://zz/count".to_owned(), "belljar://zz/ok".to_owned()], None));
}

/// During compilation, `list-time` may end a page after few entries. But a client that follows the cursors to the end
/// gets all entries.
#[test]
fn a_list_that_begins_before_all_mounts_are_loaded_is_complete() {
    wait_until_complete(|| uncompiled_site("1s").stdio(Era::Stateless).uris().len());
}

/// Lists again and again until a list is complete. On a busy machine, one call may take longer than `list-time`.
fn wait_until_complete(mut list: impl FnMut() -> usize) {
    wait_until("a complete list", || match list() {
        10_001 => Ok(()),
        entries => Err(format!("{entries} entries")),
    });
}

/// If a client continues a list while the mount is being compiled, the list does not end early.
#[test]
fn a_list_continued_before_its_mount_is_loaded_is_complete() {
    wait_until_complete(|| {
        let site = uncompiled_site("1s");
        assert!(site.run(&["check"]).status.success());
        let mut client = site.stdio(Era::Stateless);
        let (first, cursor) = page(&mut client, None);
        client.close();
        std::fs::remove_dir_all(site.path("cache")).unwrap();
        let mut client = site.stdio(Era::Stateless);
        let (mut seen, mut next) = (first, cursor);
        while let Some(cursor) = next {
            let (more, following) = page(&mut client, Some(&cursor));
            seen.extend(more);
            next = following;
        }
        seen.len()
    });
}
