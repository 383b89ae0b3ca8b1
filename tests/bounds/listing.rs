//! Lists that hang, lie, do not end or are too much: they are told and left out, and the others are served.

use std::time::{Duration, Instant};

use belljar_tests::{Client, Stdio};
use serde_json::{Value, json};

use crate::component::Hand;
use crate::place::{SLACK, WITNESS, assert_clean, attack, serve, site};

/// Two imps, one that lists as `how` says and one that lists well, around the witness in the order of their names.
fn listing(how: &str, more: &str) -> belljar_tests::Site {
    site(&format!(
        "list-time = \"2s\"\n[mounts.bad]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_LIST = {how:?} }}\n{more}\n\
         [mounts.fine]\ncomponent = \"imp.wasm\"\n"
    ))
}

/// The first page of a listing: its items' names, and whether there is more.
fn first_page(client: &mut Client<Stdio>) -> (Vec<String>, bool) {
    let page = client.request("resources/list", json!({})).unwrap();
    let uris = page["resources"].as_array().unwrap().iter().map(|item| item["uri"].as_str().unwrap().to_owned());
    (uris.collect(), !page["nextCursor"].is_null())
}

/// What the log says of the listing of `bad`, once that holds `why`: the log may come a little later than the answer.
fn told(client: &mut Client<Stdio>, why: &str) -> String {
    let began = Instant::now();
    loop {
        let log = client.wire().process.stderr();
        let lines = log.lines().filter(|line| line.contains("in the listing") && line.contains("mount=bad"));
        let told = lines.collect::<Vec<_>>().join("\n");
        if told.contains(why) {
            return told;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "nobody is told that \"{why}\" but: {told}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const OTHERS: [&str; 3] = [WITNESS, "belljar://fine/count", "belljar://fine/ok"];

#[test]
fn a_mount_that_does_not_list_is_left_out_and_the_others_are_served() {
    for (how, why) in [
        ("loop", "limit was reached"),
        ("sleep", "time"),
        ("trap", "trapped"),
        ("failed", "the imp does not list"),
        ("huge", "limit was reached"),
    ] {
        let site = listing(how, "[mounts.bad.limits]\nfuel = 1_000_000_000_000\ntime = \"60s\"");
        let mut client = serve(&site);
        let listed = attack(&mut client, "resources/list", json!({}));
        let page = listed.answer.unwrap();
        let uris: Vec<_> = page["resources"].as_array().unwrap().iter().map(|item| &item["uri"]).collect();
        assert_eq!(uris, OTHERS, "{how}");
        assert_eq!(page["nextCursor"], Value::Null, "{how}");
        assert!(listed.took < Duration::from_secs(2) + SLACK, "{how} took {:?}", listed.took);
        assert!(told(&mut client, why).contains("left out"), "{how}");
        // The mount itself is there, and is read.
        assert_eq!(client.text("belljar://bad/ok"), "fine", "{how}");
    }
}

/// Whoever reads the log is to turn the screw that helps.
#[test]
fn the_lists_own_deadline_is_told_as_that() {
    let site = listing("sleep", "[mounts.bad.limits]\ntime = \"60s\"");
    let mut client = serve(&site);
    client.uris();
    let told = told(&mut client, "list-time");
    assert!(!told.contains("of 1m"), "{told}");
}

/// The deadline is that of the whole list, however many hang and however they are called.
#[test]
fn many_that_hang_take_no_longer_than_one() {
    let mut config = "list-time = \"1500ms\"\n".to_owned();
    for n in 0..24 {
        let how = ["loop", "sleep"][n % 2];
        config += &format!(
            "[mounts.a{n:02}]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_LIST = \"{how}\", IMP_TEMPLATES = \"loop\" }}\n\
             limits = {{ fuel = 1_000_000_000_000, time = \"60s\" }}\n"
        );
    }
    let site = site(&config);
    let mut client = serve(&site);
    for (method, key) in [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")] {
        let began = Instant::now();
        let pages = client.pages(method, key);
        assert!(began.elapsed() < Duration::from_millis(1500) * 2 + SLACK, "{method} took {:?}", began.elapsed());
        let items = pages.concat();
        assert!(items.iter().any(|item| item.to_string().contains("belljar://clock/")), "{method}: {items:?}");
    }
}

/// The operator is told by name, in `belljar list` too, which waits no longer than a client would.
#[test]
fn belljar_list_says_why_something_is_left_out() {
    let site = listing("loop", "[mounts.broken]\ncomponent = \"absent.wasm\"");
    let text = crate::place::said(&site.run(&["list"]));
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
    for (how, served, dropped, why) in [
        ("garbage", &["good/first", "good/last"][..], 24, "begins with"),
        ("duplicates", &["first", "twice", "last"], 2, "listed twice"),
        ("spoof", &["own"], 6, ""),
    ] {
        let site = listing(how, "[mounts.zz]\ncomponent = \"imp.wasm\"\nuri = \"belljar://bad/inner/\"");
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
        let told = told(&mut client, &format!("{dropped} of its entries left out, the first because "));
        assert!(told.contains(why), "{how}: {told}");
        assert_clean(&told.replace('\n', " "));
    }
}

/// A name inside another mount's base belongs to that mount, whoever lists it.
#[test]
fn a_name_within_another_mount_is_that_mounts() {
    let site = listing("spoof", "[mounts.zz]\ncomponent = \"imp.wasm\"\nuri = \"belljar://bad/inner/\"");
    let mut client = serve(&site);
    let items = client.resources();
    let inner: Vec<_> = items.iter().filter(|item| item["uri"].as_str().unwrap().contains("/inner/")).collect();
    let uris: Vec<_> = inner.iter().map(|item| &item["uri"]).collect();
    assert_eq!(uris, ["belljar://bad/inner/count", "belljar://bad/inner/ok"]);
    assert!(inner.iter().all(|item| item["_meta"]["dev.belljar/mount"] == "zz"), "{inner:?}");
    assert!(items.iter().all(|item| item["_meta"]["dev.belljar/mount"].is_string()), "{items:?}");
}

#[test]
fn what_is_wrong_with_an_entry_is_taken_out_and_the_rest_is_shown() {
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

/// A list without an end is cut where the operator says; a walk over it ends.
#[test]
fn an_endless_list_is_bounded() {
    let site = listing("endless", "[mounts.bad.limits]\nresources = 2500");
    let mut client = serve(&site);
    let uris = client.uris();
    let own = uris.iter().filter(|uri| uri.starts_with("belljar://bad/")).count();
    assert_eq!(own, 2500);
    for uri in OTHERS {
        assert!(uris.iter().any(|other| other == uri), "{uri}");
    }
    let told = told(&mut client, "more than 2500 resources");
    assert!(told.contains("[mounts.bad.limits]"), "{told}");
}

/// Pages with nothing or next to nothing on them, without an end: whoever goes through the list comes to the others, and
/// each of its pages comes in time.
#[test]
fn a_list_that_drips_for_ever_does_not_keep_the_others_for_ever() {
    for how in ["endless-empty", "drip"] {
        let site = site(&format!(
            "list-time = \"600ms\"\n[mounts.bad]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_LIST = {how:?} }}\n"
        ));
        let mut client = serve(&site);
        let mut params = json!({});
        for pages in 1.. {
            let asked = Instant::now();
            let page = client.request("resources/list", params).unwrap();
            assert!(asked.elapsed() < Duration::from_secs(1) + SLACK, "{how}: page {pages} took {:?}", asked.elapsed());
            let items = page["resources"].as_array().unwrap();
            if items.iter().any(|item| item["uri"] == WITNESS) {
                break;
            }
            assert!(pages < 40, "{how}: nothing of the others on {pages} pages");
            assert!(page["nextCursor"].is_string(), "{how}: the walk ends after {pages} pages, without the others");
            params = json!({ "cursor": page["nextCursor"] });
        }
    }
}

/// A list that takes longer than one request may, and comes to an end, is served whole, on more pages.
#[test]
fn a_slow_list_is_served_whole() {
    let site = site("list-time = \"1s\"\n[mounts.slow]\ncomponent = \"imp.wasm\"\nenv = { IMP_LIST = \"slow\" }\n");
    let mut client = serve(&site);
    let uris = client.uris();
    let own: Vec<_> = uris.iter().filter_map(|uri| uri.strip_prefix("belljar://slow/n/")).collect();
    let all: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    assert_eq!(own, all, "{}", client.wire().process.stderr());
    assert!(uris.iter().any(|uri| uri == WITNESS));
}

#[test]
fn a_provider_that_pages_in_a_circle_is_cut() {
    for (how, why) in [("echo", "cursor that it was given"), ("long-cursor", "5000 bytes"), ("late-trap", "trapped")] {
        let site = listing(how, "");
        let mut client = serve(&site);
        let uris = client.uris();
        assert_eq!(uris.iter().filter(|uri| *uri == "belljar://bad/ok").count(), 1, "{how}: {uris:?}");
        for uri in OTHERS {
            assert!(uris.iter().any(|other| other == uri), "{how}: {uri}");
        }
        told(&mut client, why);
    }
}

/// One page of the provider's is as many of the client's as it takes, with nothing lost in between.
#[test]
fn a_large_page_is_served_in_parts() {
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
fn templates_that_reach_for_others_are_refused() {
    let site = site(
        "[mounts.bad]\ncomponent = \"imp.wasm\"\nenv = { IMP_TEMPLATES = \"capture\" }\n\
         [mounts.zz]\ncomponent = \"imp.wasm\"\nuri = \"belljar://bad/inner/\"\n",
    );
    let mut client = serve(&site);
    let templates = client.templates();
    assert_eq!(templates, ["belljar://bad/mine/{id}", "belljar://clock/{+zone}"]);
    told(&mut client, "13 of its entries left out");
    // The names that they would have matched are read where they belong.
    assert!(client.text(WITNESS).contains("zone: UTC"));
}

#[test]
fn templates_have_their_bounds() {
    for (how, served, why) in [
        ("many", &[][..], "2000 templates"),
        ("long", &["belljar://bad/{ok}"], "2 of its entries left out"),
        ("twice", &["belljar://bad/{a}", "belljar://bad/{b}"], "listed twice"),
        ("loop", &[], "limit was reached"),
        ("trap", &[], "trapped"),
    ] {
        let site = site(&format!("[mounts.bad]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_TEMPLATES = {how:?} }}\n"));
        let mut client = serve(&site);
        let templates = client.templates();
        let own: Vec<_> = templates.iter().filter(|template| template.starts_with("belljar://bad/")).collect();
        assert_eq!(own, served, "{how}");
        assert!(templates.iter().any(|template| template.starts_with("belljar://clock/")), "{how}: {templates:?}");
        told(&mut client, why);
    }
}

#[test]
fn a_description_is_cleaned_and_cut_and_cannot_hang_anything() {
    for (how, expected) in [("loop", "limit was reached"), ("trap", "trapped"), ("dressed", "visible")] {
        let site = site(&format!("[mounts.bad]\ncomponent = \"imp.wasm\"\nenv = {{ IMP_DESCRIBE = {how:?} }}\n"));
        let json = site.run_json(&["list"]);
        let bad = json["mounts"].as_array().unwrap().iter().find(|mount| mount["name"] == "bad").unwrap();
        let said = if how == "dressed" { &bad["title"] } else { &bad["error"] }.as_str().unwrap();
        assert!(said.contains(expected), "{how}: {bad}");
        assert_clean(said);
        assert!(bad["description"].as_str().is_none_or(|text| text.chars().count() <= 4096));
        assert_eq!(bad["resources"].as_array().unwrap().len(), 2, "{how}: {bad}");
    }
}

/// Even a component that loops before any of its functions is called.
#[test]
fn a_mount_that_loops_at_the_start_is_left_out() {
    let site = site("list-time = \"1s\"\n[mounts.bad.limits]\nfuel = 1_000_000_000_000\n");
    Hand { fields: "(func $s (loop $l (br $l))) (start $s)", ..Hand::default() }.mount(&site, "bad");
    let mut client = serve(&site);
    let listed = attack(&mut client, "resources/list", json!({}));
    assert!(listed.took < Duration::from_secs(1) + SLACK, "{:?}", listed.took);
    assert_eq!(listed.answer.unwrap()["resources"][0]["uri"], WITNESS);
    told(&mut client, "limit was reached");
}
