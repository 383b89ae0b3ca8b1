//! The cache of the real server: it serves an answer or a list again for as long as the provider and the operator
//! allow.

use std::thread;
use std::time::Duration;

use belljar_tests::{Client, DEADLINE, Era, Site, Stdio, wait_until};
use serde_json::{Value, json};

use crate::support::empty;

/// A site with the hostile guest (`tests/guests/hostile`), whose answers stay fresh for a minute.
fn hostile_guest(mount: &str) -> Site {
    let site = empty();
    site.mount_as("guest_hostile", "hostile.wasm");
    site.config(&format!(
        "audit = {:?}\n[mounts.hostile]\nenv = {{ HOSTILE_FRESH = \"60000\" }}\n{mount}\n",
        site.path("audit.jsonl")
    ));
    site
}

/// Two reads of a clock, 20 ms apart. The answers differ if the guest runs for each of them.
fn twice(client: &mut Client<Stdio>) -> [Value; 2] {
    [(); 2].map(|()| {
        let reading = client.read("belljar://hostile/tick").unwrap();
        thread::sleep(Duration::from_millis(20));
        reading
    })
}

#[test]
fn a_fresh_answer_is_served_again_and_recorded() {
    let site = hostile_guest("");
    let mut client = site.stdio(Era::Stateless);
    let [first, second] = twice(&mut client);
    assert_eq!(first["contents"], second["contents"], "the second answer is not from the cache");
    assert_eq!(first["ttlMs"], 60_000);
    let left = second["ttlMs"].as_u64().unwrap();
    assert!((1..60_000).contains(&left), "{left}");
    assert_eq!(first["cacheScope"], "private");
    client.close();
    let records = site.audit();
    let reads: Vec<&Value> = records.iter().filter(|record| record["operation"] == "read").collect();
    assert_eq!(reads.len(), 2, "{records:?}");
    assert!(reads[0]["served_from"].is_null() && reads[0]["usage"]["fuel"].as_u64() > Some(0));
    assert_eq!((&reads[1]["served_from"], &reads[1]["usage"]["fuel"]), (&json!("cache"), &json!(0)));
    assert_eq!(reads[1]["outcome"], "ok", "{}", reads[1]);
}

#[test]
fn settings_of_the_operator_limit_disable_and_share_the_cache() {
    let site = hostile_guest("cache = \"off\"");
    let [first, second] = twice(&mut site.stdio(Era::Stateless));
    assert_ne!(first["contents"], second["contents"], "the second answer is from the cache");
    assert_eq!(second["ttlMs"], 0, "a client may not cache the answer either");

    let site = hostile_guest("cache = \"300ms\"\ncache-scope = \"public\"");
    let mut client = site.stdio(Era::Stateless);
    let first = client.read("belljar://hostile/tick").unwrap();
    assert_eq!((&first["ttlMs"], &first["cacheScope"]), (&json!(300), &json!("public")));
    wait_until("an answer that is newer than the cached one", || {
        let reading = client.read("belljar://hostile/tick").unwrap();
        assert!(reading["ttlMs"].as_u64().unwrap() <= 300, "{reading}");
        (reading["contents"] != first["contents"]).then_some(()).ok_or_else(|| reading.to_string())
    });
}

#[test]
fn wrong_settings_of_the_cache_name_the_expected_values() {
    for (line, expected) in [
        ("cache = \"never\"", "mounts.hostile.cache = \"never\": expected \"off\" or the longest time"),
        ("cache = \"40days\"", "at most 1day"),
        ("cache-scope = \"world\"", "expected \"private\" or \"public\""),
    ] {
        let site = hostile_guest(line);
        let output = site.run(&["check"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(expected), "{line}: {stderr}");
    }
    let site = empty();
    for (line, expected) in
        [("poll = \"1ms\"", "watch.poll = \"1ms\": expected 100ms to 1day"), ("pol = \"1s\"", "\"poll\"")]
    {
        site.config(&format!("[watch]\n{line}\n"));
        let output = site.run(&["check"]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(expected), "{line}: {stderr}");
    }
}

/// A subscriber that reads after a notification gets the new contents, even if the old answer may be cached for longer.
#[test]
fn a_notified_change_ends_the_freshness_of_the_cached_answer() {
    let site = empty();
    site.mount_as("guest_hostile", "hostile.wasm");
    site.write("data/file", "old");
    let data = site.path("data");
    site.config(&format!(
        "[mounts.hostile]\nenv = {{ HOSTILE_FRESH = \"3600000\" }}\nfs = {{ \"/data\" = {data:?} }}\n"
    ));
    let uri = "belljar://hostile/need/%252Fdata%252Ffile";
    let mut client = site.stdio(Era::Session);
    client.request("resources/subscribe", json!({ "uri": uri })).unwrap();
    for word in ["new", "newer", "newest"] {
        let before = client.text(uri);
        // Replace the file in one step. A file that is truncated and then written would change twice.
        site.write("next", word);
        std::fs::rename(site.path("next"), site.path("data/file")).unwrap();
        let notification = client.next_notification(DEADLINE).unwrap();
        assert_eq!(notification["method"], "notifications/resources/updated", "{notification}");
        assert_ne!(client.text(uri), before);
        assert!(client.text(uri).contains(word), "{}", client.text(uri));
    }
}

/// One run of the guest answers 64 identical reads. Reads during the run wait for its answer, and later reads get the
/// cached answer. A read of another resource is answered before the run ends.
#[test]
fn identical_reads_run_once() {
    let site = hostile_guest("[mounts.hostile.limits]\ntime = \"120s\"");
    let server = site.http();
    let mut other = server.client(Era::Stateless);
    assert_eq!(other.text("belljar://hostile/ok"), "fine");
    let readers: Vec<_> = (0..64)
        .map(|_| {
            let mut client = server.client(Era::Stateless);
            thread::spawn(move || client.text("belljar://hostile/sleep/2000"))
        })
        .collect();
    assert_eq!(other.text("belljar://hostile/count"), "1");
    let texts: Vec<String> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    let records = wait_until("a record of each read", || {
        let records = site.audit();
        let reads = records.iter().filter(|record| record["operation"] == "read").count();
        if reads >= 66 { Ok(records) } else { Err(format!("{reads} records of {}", records.len())) }
    });
    let identical: Vec<&Value> = records.iter().filter(|record| record["reference"] == "sleep/2000").collect();
    let runs = identical.iter().filter(|record| record["served_from"].is_null()).count();
    assert_eq!((identical.len(), runs), (64, 1), "each read has a record, and the guest ran once");
}

/// If one caller cancels a read, other callers of the same read still get its answer.
#[test]
fn a_cancelled_read_continues_for_other_callers() {
    let site = hostile_guest("");
    let mut client = site.stdio(Era::Stateless);
    let uri = json!({ "uri": "belljar://hostile/sleep/600" });
    // An answer to a later request shows that both were accepted.
    let first = client.send("resources/read", uri.clone());
    client.ping();
    let second = client.send("resources/read", uri);
    client.ping();
    client.cancel(first);
    assert!(client.wait(second).unwrap()["contents"][0]["text"].is_string());
    client.close();
}

/// belljar fetches a list again only after its revision has changed.
#[test]
fn a_list_is_cached_while_its_revision_is_unchanged() {
    let site = empty();
    site.mount("files");
    site.write("notes/a.md", "# a");
    let notes = site.path("notes");
    site.config(&format!(
        "audit = {:?}\n[mounts.files]\nfs = {{ \"/notes\" = {notes:?} }}\n",
        site.path("audit.jsonl")
    ));
    let mut client = site.stdio(Era::Stateless);
    // Lists until the cached list is no longer current, and waits for the records of its calls.
    let mut lists = |n: usize, expected: (usize, usize), why: &str| {
        assert_eq!(client.uris().len(), n);
        thread::sleep(Duration::from_millis(1100));
        wait_until(why, || {
            let records = site.audit();
            let count = |operation: &str| records.iter().filter(|record| record["operation"] == operation).count();
            let counts = (count("list-resources"), count("catalog-revision"));
            if counts == expected { Ok(()) } else { Err(format!("{counts:?} instead of {expected:?}")) }
        });
    };
    lists(1, (1, 0), "the first list, which waits for no revision");
    lists(1, (2, 1), "the second list, which fetches the revision");
    lists(1, (2, 2), "a list that did not change");
    lists(1, (2, 3), "a list that did not change");
    site.write("notes/b.md", "# b");
    lists(2, (3, 4), "a list that changed");
    lists(2, (3, 5), "a list that did not change");
}

/// A client that follows cursors gets all pages from one version of the list, even if the list changes meanwhile.
#[test]
fn all_pages_come_from_one_version_of_the_list() {
    let mut site = empty();
    site.mount_as("guest_hostile", "hostile.wasm");
    site.env("RUST_LOG", "error");
    site.config("[mounts.hostile]\nenv = { HOSTILE_LIST = \"endless\", HOSTILE_REVISIONS = \"change\" }\n[mounts.hostile.limits]\nresources = 3000\n");
    let mut client = site.stdio(Era::Stateless);
    let mut other = site.stdio(Era::Stateless);
    let first = client.request("resources/list", json!({})).unwrap();
    thread::sleep(Duration::from_millis(1100));
    other.uris();
    client.request("resources/list", json!({})).unwrap();
    let mut uris: Vec<Value> = Vec::new();
    let mut page = first;
    loop {
        uris.extend(page["resources"].as_array().unwrap().iter().map(|one| one["uri"].clone()));
        match page["nextCursor"].take() {
            Value::Null => break,
            cursor => page = client.request("resources/list", json!({ "cursor": cursor })).unwrap(),
        }
    }
    let expected: Vec<Value> = (0..3000).map(|n| json!(format!("belljar://hostile/n/{n}"))).collect();
    assert_eq!(uris, expected);
    assert!(
        page["_meta"]["dev.belljar/notices"].to_string().contains("lists more than 3000 resources"),
        "{}",
        page["_meta"]
    );
}
