//! Lists of the hostile guest (`tests/guests/hostile`) that hang, break rules, have no end or are too
//! large. The real server leaves them out with a notice, and lists the other mounts.

use belljar_tests::{Client, Stdio, wait_until};
use serde_json::{Value, json};

use crate::support::component::HandWritten;
use crate::support::{WITNESS, assert_clean, attack, serve, site};

/// A site with two mounts of the hostile guest: `bad` lists as `how` says, and `fine` lists correctly. In the list, the
/// witness
/// `clock` is between them.
fn listing(how: &str, more: &str) -> belljar_tests::Site {
    // A list that hangs gets a short time limit, all others a long one.
    let time = if ["loop", "sleep"].contains(&how) { "2s" } else { "60s" };
    site(&format!(
        "list-time = {time:?}\n[mounts.bad]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_LIST = {how:?} }}\n{more}\n\
         [mounts.fine]\ncomponent = \"hostile.wasm\"\n"
    ))
}

/// Fetches the first page of a list. Returns the URIs, and true if there are more pages.
fn first_page(client: &mut Client<Stdio>) -> (Vec<String>, bool) {
    let page = client.request("resources/list", json!({})).unwrap();
    let uris = page["resources"].as_array().unwrap().iter().map(|item| item["uri"].as_str().unwrap().to_owned());
    (uris.collect(), !page["nextCursor"].is_null())
}

/// Waits until the log contains `why` in a line about the list of `bad`. Returns all lines about this list.
fn await_listing_log(client: &mut Client<Stdio>, why: &str) -> String {
    wait_until(&format!("{why:?} in the log of the listing"), || {
        let log = client.wire().process.stderr();
        let lines = log.lines().filter(|line| line.contains("in the listing") && line.contains("mount=bad"));
        let text = lines.collect::<Vec<_>>().join("\n");
        if text.contains(why) { Ok(text) } else { Err(text) }
    })
}

/// Fetches the list, while the witness is read, until the first page has exactly these URIs. On a busy machine, a
/// correct mount may also miss the deadline of a list.
fn await_list(client: &mut Client<Stdio>, expected: &[&str]) {
    wait_until(&format!("a list of {expected:?}"), || {
        let page = attack(client, "resources/list", json!({})).answer.unwrap();
        let uris: Vec<_> = page["resources"].as_array().unwrap().iter().map(|item| &item["uri"]).collect();
        let is_expected = uris == expected && page["nextCursor"].is_null();
        if is_expected { Ok(()) } else { Err(page.to_string()) }
    });
}

/// The entries of the other mounts.
const OTHERS: [&str; 3] = [WITNESS, "belljar://fine/count", "belljar://fine/ok"];

#[test]
fn a_mount_that_does_not_list_is_left_out_and_the_others_are_served() {
    for (how, why) in [
        ("sleep", "time"),
        ("trap", "trapped"),
        ("failed", "the hostile guest does not list"),
        ("huge", "limit was reached"),
    ] {
        let site = listing(how, "[mounts.bad.limits]\nfuel = 1_000_000_000_000\ntime = \"60s\"");
        let mut client = serve(&site);
        await_list(&mut client, &OTHERS);
        assert!(await_listing_log(&mut client, why).contains("left out"), "{how}");
        // Reads of the mount still work.
        assert_eq!(client.text("belljar://bad/ok"), "fine", "{how}");
    }
}

/// If the whole list exceeds `list-time`, the log names this setting, and not the time limit of the mount.
#[test]
fn the_log_names_the_deadline_of_the_list() {
    let site = listing("sleep", "[mounts.bad.limits]\ntime = \"60s\"");
    let mut client = serve(&site);
    client.uris();
    let log = await_listing_log(&mut client, "list-time");
    assert!(!log.contains("of 1m"), "{log}");
}

/// The deadline `list-time` is for the whole list, for any number of hanging mounts.
#[test]
fn many_hanging_mounts_are_stopped_concurrently() {
    let mut config = "list-time = \"1500ms\"\n".to_owned();
    for n in 0..24 {
        let how = ["loop", "sleep"][n % 2];
        config += &format!(
            "[mounts.a{n:02}]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_LIST = \"{how}\", HOSTILE_TEMPLATES = \"loop\" }}\n\
             limits = {{ fuel = 1_000_000_000_000, time = \"60s\" }}\n"
        );
    }
    let site = site(&config);
    let mut client = serve(&site);
    for (method, key) in [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")] {
        wait_until(&format!("the witness in {method}"), || {
            let items = client.pages(method, key).concat();
            let is_there = items.iter().any(|item| item.to_string().contains("belljar://clock/"));
            if is_there { Ok(()) } else { Err(format!("{items:?}")) }
        });
    }
    client.close();
    // belljar calls eight mounts at once. So the 24 calls overlap in a few groups, and do not run one by one.
    let records = site.audit();
    let mut calls: Vec<(u64, u64)> = (0..24)
        .map(|n| {
            let mount = format!("a{n:02}");
            let is_first = |record: &&Value| record["mount"] == *mount && record["operation"] == "list-resources";
            let record = records.iter().find(is_first).unwrap_or_else(|| panic!("no list of {mount}"));
            let end = micros_of_day(record["time"].as_str().unwrap());
            (end - record["usage"]["micros"].as_u64().unwrap(), end)
        })
        .collect();
    calls.sort_unstable();
    let (mut groups, mut group_end) = (0, 0);
    for (begin, end) in &calls {
        if *begin >= group_end {
            (groups, group_end) = (groups + 1, *end);
        }
    }
    assert!(groups <= 12, "{groups} groups: {calls:?}");
}

/// The time of a record (`2026-11-23T14:26:39.198Z`) in microseconds since midnight, plus a day. The day keeps the
/// start of a call positive if it began before midnight.
fn micros_of_day(time: &str) -> u64 {
    let number = |from: usize, to: usize| time[from..to].parse::<u64>().unwrap();
    (((24 + number(11, 13)) * 60 + number(14, 16)) * 60 + number(17, 19)) * 1_000_000 + number(20, 23) * 1_000
}

/// `belljar list` names each missing mount with the reason.
#[test]
fn belljar_list_names_the_reason_of_a_missing_mount() {
    let site = listing("loop", "[mounts.broken]\ncomponent = \"absent.wasm\"");
    let text = crate::support::stdout_and_stderr(&site.run(&["list"]));
    let bad = text.split("\nclock").next().unwrap();
    assert!(bad.starts_with("bad  belljar://bad/"), "{text}");
    assert!(bad.contains("! left out: the ") && bad.contains("limit was reached"), "{text}");
    assert!(text.contains("broken  not served: ") && text.contains("absent.wasm"), "{text}");
    for uri in OTHERS {
        assert!(text.contains(uri), "{uri}: {text}");
    }
    let json = site.run_json(&["list"]);
    let bad = json["mounts"].as_array().unwrap().iter().find(|mount| mount["name"] == "bad").unwrap();
    assert!(bad["notices"].to_string().contains("left out"), "{bad}");
}

#[test]
fn entries_that_break_a_rule_are_dropped_one_by_one() {
    // Rows CAT-01 and CAT-04 test names that belong to other mounts, and names that are listed twice.
    for (how, served, dropped, why) in [("garbage", &["good/first", "good/last"][..], 24, "begins with")] {
        let site = listing(how, "[mounts.zz]\ncomponent = \"hostile.wasm\"\nuri = \"belljar://bad/inner/\"");
        let mut client = serve(&site);
        let uris = client.uris();
        let own: Vec<_> = uris
            .iter()
            .filter_map(|uri| uri.strip_prefix("belljar://bad/"))
            .filter(|r| !r.starts_with("inner/"))
            .collect();
        assert_eq!(own, served, "{how}");
        for uri in OTHERS {
            assert_eq!(uris.iter().filter(|other| *other == uri).count(), 1, "{how}: {uri} in {uris:?}");
        }
        let log = await_listing_log(&mut client, &format!("{dropped} of its entries left out, the first because "));
        assert!(log.contains(why), "{how}: {log}");
        assert_clean(&log.replace('\n', " "));
    }
}

/// A name below the base of another mount belongs to that mount, even if this mount lists it.
#[test]
fn a_name_within_another_mount_belongs_to_the_other_mount() {
    let site = listing("spoof", "[mounts.zz]\ncomponent = \"hostile.wasm\"\nuri = \"belljar://bad/inner/\"");
    let mut client = serve(&site);
    let items = client.resources();
    let inner: Vec<_> = items.iter().filter(|item| item["uri"].as_str().unwrap().contains("/inner/")).collect();
    let uris: Vec<_> = inner.iter().map(|item| &item["uri"]).collect();
    assert_eq!(uris, ["belljar://bad/inner/count", "belljar://bad/inner/ok"]);
    assert!(inner.iter().all(|item| item["_meta"]["dev.belljar/mount"] == "zz"), "{inner:?}");
    assert!(items.iter().all(|item| item["_meta"]["dev.belljar/mount"].is_string()), "{items:?}");
}

#[test]
fn wrong_fields_of_an_entry_are_removed_and_the_rest_is_shown() {
    let site = listing("dressed", "");
    let mut client = serve(&site);
    let items = client.resources();
    let item = items.iter().find(|item| item["uri"] == "belljar://bad/dressed").unwrap();
    for (field, most) in [("name", 256), ("title", 256), ("description", 4096)] {
        let text = item[field].as_str().unwrap();
        assert!(text.starts_with("visible") && text.chars().count() <= most, "{field}: {} {text:?}", text.len());
        assert_clean(text);
    }
    for absent in ["mimeType", "size"] {
        assert_eq!(item[absent], Value::Null, "{item}");
    }
    assert_eq!(item["annotations"], json!({ "audience": ["user"] }));
    let icons = item["icons"].as_array().unwrap();
    assert!(icons.len() <= 8 && icons.iter().all(|icon| icon["src"] == "https://example.com/icon.png"), "{icons:?}");
    assert_eq!(icons[0]["sizes"], json!(["48x48"]));
    assert_eq!(icons[0]["mimeType"], Value::Null);
    assert_eq!(item["_meta"], json!({ "com.example/fine": [1, 2], "dev.belljar/mount": "bad" }));
}

/// Endless lists with empty or nearly empty pages. A client that follows the cursors must reach the other mounts, and
/// get each page in time.
#[test]
fn an_endless_list_does_not_hide_the_other_mounts() {
    for how in ["endless-empty", "drip"] {
        let site = site(&format!(
            "list-time = \"600ms\"\n[mounts.bad]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_LIST = {how:?} }}\n"
        ));
        let mut client = serve(&site);
        let mut params = json!({});
        for pages in 1.. {
            let page = client.request("resources/list", params).unwrap();
            let items = page["resources"].as_array().unwrap();
            if items.iter().any(|item| item["uri"] == WITNESS) {
                break;
            }
            assert!(pages < 40, "{how}: no entry of the other mounts on {pages} pages");
            assert!(
                page["nextCursor"].is_string(),
                "{how}: the list ends after {pages} pages, without the other mounts"
            );
            params = json!({ "cursor": page["nextCursor"] });
        }
    }
}

/// A list that ends, but takes longer than one request may, is served completely, on several pages.
#[test]
fn a_slow_list_is_served_completely() {
    let site =
        site("list-time = \"1s\"\n[mounts.slow]\ncomponent = \"hostile.wasm\"\nenv = { HOSTILE_LIST = \"slow\" }\n");
    let mut client = serve(&site);
    let uris = client.uris();
    let own: Vec<_> = uris.iter().filter_map(|uri| uri.strip_prefix("belljar://slow/n/")).collect();
    let all: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(own, all, "{}", client.wire().process.stderr());
    assert!(uris.iter().any(|uri| uri == WITNESS));
}

#[test]
fn a_list_that_fails_later_keeps_its_first_pages() {
    // Row CAT-03 tests cursors that repeat, and cursors that are too long.
    for (how, why) in [("late-trap", "trapped")] {
        let site = listing(how, "");
        let mut client = serve(&site);
        let uris = client.uris();
        assert_eq!(uris.iter().filter(|uri| *uri == "belljar://bad/ok").count(), 1, "{how}: {uris:?}");
        for uri in OTHERS {
            assert!(uris.iter().any(|other| other == uri), "{how}: {uri}");
        }
        await_listing_log(&mut client, why);
    }
}

/// A large page of a provider becomes several pages for the client, without a lost entry.
#[test]
fn a_large_page_is_served_as_several_pages() {
    let site = listing("large", "");
    let mut client = serve(&site);
    let (first, more) = first_page(&mut client);
    assert!(first.len() <= 1000 && more, "{} entries, {more}", first.len());
    let uris = client.uris();
    let own: Vec<_> = uris.iter().filter_map(|uri| uri.strip_prefix("belljar://bad/n/")).collect();
    let all: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
    assert_eq!(own, all);
}

#[test]
fn wrong_templates_are_left_out() {
    for (how, served, why) in [
        // Row CAT-09 tests too many and too long templates.
        ("twice", &["belljar://bad/{a}", "belljar://bad/{b}"][..], "listed twice"),
        ("loop", &[], "limit was reached"),
        ("trap", &[], "trapped"),
    ] {
        let site =
            site(&format!("[mounts.bad]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_TEMPLATES = {how:?} }}\n"));
        let mut client = serve(&site);
        let templates = client.templates();
        let own: Vec<_> = templates.iter().filter(|template| template.starts_with("belljar://bad/")).collect();
        assert_eq!(own, served, "{how}");
        assert!(templates.iter().any(|template| template.starts_with("belljar://clock/")), "{how}: {templates:?}");
        await_listing_log(&mut client, why);
    }
}

#[test]
fn a_description_is_cleaned_and_cut_and_cannot_block_the_list() {
    for (how, expected) in [("loop", "limit was reached"), ("trap", "trapped"), ("dressed", "visible")] {
        let site =
            site(&format!("[mounts.bad]\ncomponent = \"hostile.wasm\"\nenv = {{ HOSTILE_DESCRIBE = {how:?} }}\n"));
        let json = site.run_json(&["list"]);
        let bad = json["mounts"].as_array().unwrap().iter().find(|mount| mount["name"] == "bad").unwrap();
        let text = if how == "dressed" { &bad["title"] } else { &bad["error"] }.as_str().unwrap();
        assert!(text.contains(expected), "{how}: {bad}");
        assert_clean(text);
        assert!(bad["description"].as_str().is_none_or(|text| text.chars().count() <= 4096));
        assert_eq!(bad["resources"].as_array().unwrap().len(), 2, "{how}: {bad}");
    }
}

/// A component that loops in its start function is left out too.
#[test]
fn a_mount_that_loops_at_the_start_is_left_out() {
    let site = site("list-time = \"1s\"\n[mounts.bad.limits]\nfuel = 1_000_000_000_000\n");
    HandWritten { fields: "(func $s (loop $l (br $l))) (start $s)", ..HandWritten::default() }.mount(&site, "bad");
    let mut client = serve(&site);
    await_list(&mut client, &[WITNESS]);
    await_listing_log(&mut client, "limit was reached");
}
