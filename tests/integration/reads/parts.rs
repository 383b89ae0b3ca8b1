//! Parts: a resource is read a range at a time, and what is below a URI is listed a page at a time. The guest computes
//! its contents (`tests/guests/parts`).

use std::os::unix::fs::PermissionsExt as _;

use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::{Value, json};

use crate::support::{empty, patient};

const BASE: &str = "belljar://parts/";

/// A site with the guest, whose mount has these further lines of configuration.
fn site(mount: &str) -> Site {
    let site = empty();
    site.mount_as("guest_parts", "parts.wasm");
    site.config(&patient(&format!("audit = {:?}\n[mounts.parts]\n{mount}\n", site.path("audit.jsonl"))));
    site
}

fn client(site: &Site) -> Client<Stdio> {
    site.stdio(Era::Stateless)
}

/// The text, and what `_meta` says of the part.
fn part(client: &mut Client<Stdio>, reference: &str) -> (String, Value) {
    let mut result =
        client.read(&format!("{BASE}{reference}")).unwrap_or_else(|error| panic!("{reference}: {error:?}"));
    let contents = result["contents"][0].take();
    (contents["text"].as_str().unwrap_or_default().to_owned(), contents["_meta"]["dev.belljar/part"].clone())
}

/// The message of the error.
fn refused(client: &mut Client<Stdio>, reference: &str) -> String {
    client.read(&format!("{BASE}{reference}")).expect_err(reference).message
}

#[test]
fn a_range_is_read_in_bytes_and_in_lines_from_both_ends() {
    let site = site("");
    let mut client = client(&site);
    let whole = "one\ntwo\nthree\n";
    assert_eq!(part(&mut client, "small.txt"), (whole.to_owned(), Value::Null));
    for (query, text, first, last, next) in [
        ("bytes=0-3", "one\n", 0, 3, Some("bytes=4-7")),
        ("bytes=4-", "two\nthree\n", 4, 13, None),
        ("bytes=-6", "three\n", 8, 13, None),
        ("lines=1-1", "one\n", 1, 1, Some("lines=2-2")),
        ("lines=2-9", "two\nthree\n", 2, 3, None),
        ("lines=-1", "three\n", 3, 3, None),
    ] {
        let (given, meta) = part(&mut client, &format!("small.txt?{query}"));
        assert_eq!(given, text, "{query}");
        let unit = query.split('=').next().unwrap();
        assert_eq!(
            (&meta["unit"], &meta["first"], &meta["last"]),
            (&json!(unit), &json!(first), &json!(last)),
            "{query}"
        );
        assert_eq!(meta["next"], json!(next.map(|next| format!("{BASE}small.txt?{next}"))), "{query}");
    }
    let result = client.read(&format!("{BASE}small.txt?bytes=0-3")).unwrap();
    assert_eq!(result["contents"].as_array().unwrap().len(), 1, "a range has no further content");
    assert_eq!(result["contents"][0]["uri"], format!("{BASE}small.txt?bytes=0-3"));
    // A value without a dash, and other parameters, are the provider's own.
    assert!(part(&mut client, "echo/x?lines=7&q=1").0.starts_with("echo/x?lines=7&q=1\nNone\n"));
    assert!(part(&mut client, "echo/x?q=1&lines=7-8").0.starts_with("echo/x?q=1\nSome(Range { unit: Lines"));
}

#[test]
fn a_resource_over_the_limit_gives_its_first_part_and_the_way_on() {
    let site = site("");
    let mut client = client(&site);
    // 4 GiB of lines, of which the limit on results allows 8 MiB.
    let uri = format!("{BASE}lines/67108864");
    let result = client.read(&uri).unwrap();
    let contents = result["contents"].as_array().unwrap();
    let text = contents[0]["text"].as_str().unwrap();
    assert!(text.starts_with("line 000000000 ") && text.ends_with('\n') && text.len() > 8_000_000, "{}", text.len());
    let meta = &contents[0]["_meta"]["dev.belljar/part"];
    assert_eq!((&meta["total"], &meta["last"]), (&json!(4u64 << 30), &json!(text.len() - 1)));
    let next = format!("{uri}?bytes={}-", text.len());
    assert_eq!(meta["next"], next);
    assert!(contents[1]["text"].as_str().unwrap().ends_with(&format!("The next part is {next}")), "{}", contents[1]);
    let (text, _) = part(&mut client, &format!("lines/67108864?bytes={}-{}", 2u64 << 30, (2u64 << 30) + 63));
    assert!(text.starts_with("line 033554432 "), "{text}");
    assert!(part(&mut client, "lines/67108864?lines=-1").0.starts_with("line 067108863 "));
    // The entry in the list says so.
    let listed = client.resources();
    let entry = |name: &str| listed.iter().find(|entry| entry["uri"] == format!("{BASE}{name}")).unwrap().clone();
    assert_eq!(entry("lines/67108864")["_meta"]["dev.belljar/parts"], json!({"most": 8 << 20}));
    assert_eq!(entry("small.txt")["_meta"]["dev.belljar/parts"], Value::Null);
}

#[test]
fn parts_of_a_resource_join_to_the_whole() {
    let site = site("limits.result = \"64KiB\"");
    let mut client = client(&site);
    let (mut joined, mut reference) = (String::new(), "lines/5000".to_owned());
    let mut reads = 0;
    loop {
        let (text, meta) = part(&mut client, &reference);
        joined += &text;
        reads += 1;
        let Some(next) = meta["next"].as_str() else { break };
        reference = next.strip_prefix(BASE).unwrap().to_owned();
    }
    assert_eq!((joined.len(), joined.lines().count()), (5000 * 64, 5000));
    assert!(reads > 4, "{reads}");
}

#[test]
fn what_cannot_be_read_is_refused_in_words() {
    let site = site("");
    let mut client = client(&site);
    for (reference, why) in [
        ("small.txt?bytes=5-2", "\"bytes=5-2\"; expected \"bytes=0-65535\""),
        ("small.txt?lines=0-5", "counted from 1"),
        ("small.txt?bytes=0-1&lines=1-2", "several ranges"),
        ("blob/9437184?lines=1-2", "a blob has no lines"),
        ("rows/1000000?bytes=0-1", "read in rows"),
    ] {
        let message = refused(&mut client, reference);
        assert!(message.contains(why), "{reference}: {message}");
    }
    assert!(refused(&mut client, "nothing?bytes=0-5").contains("not found"));
}

#[test]
fn a_part_that_lies_is_refused_and_named() {
    let site = site("");
    let mut client = client(&site);
    for (lie, why) in [
        ("end-before-start", "expected start <= end"),
        ("end-after-total", "expected start <= end"),
        ("no-progress", "says that more follows"),
        ("more-at-the-end", "says that more follows"),
        ("other-unit?bytes=0-9", "expected bytes, as requested"),
        ("other-reference", "\"small.txt\""),
        ("reference-below", "expected one content, with the requested reference"),
        ("reference-outside", ""),
        ("two-contents", "expected one content"),
        ("no-contents", "no contents"),
        ("nothing", "no contents"),
        ("trap", ""),
    ] {
        let message = refused(&mut client, &format!("lies/{lie}"));
        assert!(message.contains(why), "{lie}: {message}");
    }
    // Within the limit on results, because `most` leaves room for names.
    let (text, _) = part(&mut client, "lies/more-than-most");
    assert!(text.len() <= 8 << 20, "{}", text.len());
    let (_, meta) = part(&mut client, "lies/no-more-before-the-end");
    assert_eq!(meta["next"], format!("{BASE}lies/no-more-before-the-end?bytes=5-"), "the total says that more follows");
    assert_eq!(part(&mut client, "lies/whole?bytes=0-1").0, "hello");
    assert_eq!(part(&mut client, "small.txt?lines=1-1").0, "one\n", "the mount goes on");
}

#[test]
fn a_secret_does_not_come_out_in_pieces() {
    let site = empty();
    site.mount_as("guest_parts", "parts.wasm");
    // The guest computes its lines, so the secret is a text that they contain.
    let secret = site.write("secret", "line 000000005 ......");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    site.config(&patient(
        "[secrets]\nword = { file = \"secret\" }\n[mounts.parts]\nenv = { WORD = \"${secret:word}\" }\n",
    ));
    let mut client = client(&site);
    for at in 5 * 64..5 * 64 + 21 {
        let (text, _) = part(&mut client, &format!("lines/1000?bytes={at}-{}", at + 2));
        assert!(text.len() == 3 && text.contains('*'), "{at}: {text}");
    }
    assert_eq!(part(&mut client, "lines/1000?bytes=384-388").0, "line ");
    assert!(part(&mut client, "lines/1000?lines=6-6").0.starts_with("*********************.."));
}

#[test]
fn what_is_below_a_uri_is_listed_by_pages() {
    let site = site("");
    let mut client = client(&site);
    let mut below = |reference: &str, cursor: Option<&str>| {
        let mut params = json!({"uri": format!("{BASE}{reference}")});
        params.as_object_mut().unwrap().extend(cursor.map(|cursor| ("cursor".to_owned(), json!(cursor))));
        client.request("resources/directory/read", params)
    };
    let root = below("", None).unwrap();
    let entry = |name: &str| {
        root["resources"].as_array().unwrap().iter().find(|one| one["uri"] == format!("{BASE}{name}")).cloned()
    };
    assert_eq!(entry("dir/").unwrap()["mimeType"], "inode/directory");
    assert!(entry("lines/67108864").unwrap()["_meta"]["dev.belljar/parts"].is_object());
    let first = below("crowd/", None).unwrap();
    assert_eq!(first["resources"].as_array().unwrap().len(), 1000);
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let second = below("crowd/", Some(&cursor)).unwrap();
    assert_eq!(second["resources"][0]["uri"], format!("{BASE}crowd/0001000.txt"));
    for (reference, cursor, why) in [
        ("dir/", Some(cursor.as_str()), "was not given by this server for this list"),
        ("crowd/", Some("AAAA"), "was not given by this server for this list"),
        ("nowhere/", None, "not found"),
        ("lies/elsewhere/", None, "expected entries below it"),
        ("lies/outside/", None, "expected entries below it"),
        ("lies/long-cursor/", None, "a cursor of 5000 bytes; the limit is 4096"),
    ] {
        let message = below(reference, cursor).expect_err(reference).message;
        assert!(message.contains(why), "{reference}: {message}");
    }
}

#[test]
fn the_tools_and_the_command_line_read_parts_and_list_below() {
    let site = site("");
    let mut client = client(&site);
    let mut tool = |name: &str, arguments: Value| {
        let result = client.request("tools/call", json!({"name": name, "arguments": arguments})).unwrap();
        let blocks: Vec<&str> =
            result["content"].as_array().unwrap().iter().filter_map(|one| one["text"].as_str()).collect();
        blocks.join("\n")
    };
    let text = tool("read_resource", json!({"uri": format!("{BASE}lines/67108864"), "lines": "60000000-60000001"}));
    assert!(text.contains("lines 60000000 to 60000001 of 67108864") && text.contains("line 059999999 "), "{text}");
    let text = tool("read_resource", json!({"uri": format!("{BASE}lines/67108864"), "limit": 100}));
    assert!(text.contains("The next part of the resource is belljar://parts/lines/67108864?bytes="), "{text}");
    let listed = tool("list_resources", json!({"below": format!("{BASE}dir/"), "limit": 5}));
    assert!(listed.contains("5 resources; there are more") && listed.contains("dir/deep/"), "{listed}");
    let cursor = listed.lines().find_map(|line| line.strip_prefix("nextCursor: ")).unwrap();
    let more = tool("list_resources", json!({"below": format!("{BASE}dir/"), "cursor": cursor}));
    assert!(more.contains("dir/0000003.txt") && !more.contains("dir/0000002.txt"), "{more}");

    let output = site.run(&["read", &format!("{BASE}small.txt?lines=1-2")]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n");
    let notice = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(notice.contains("lines 1 to 2 of 3; the next part: ") && notice.contains("?lines=3-4"), "{notice}");
    let output = site.run(&["list", "--below", &format!("{BASE}dir/"), "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["resources"].as_array().unwrap().len(), 2502);
}
