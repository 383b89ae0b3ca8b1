//! Answers and lists that are served more than once: for as long as their provider, and the operator, say that they stand.

use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::{Value, json};

use crate::place::bare;

/// A site with the imp, whose answers stay fresh for a minute.
fn imp(mount: &str) -> Site {
    let site = bare();
    site.mount_as("guest_imp", "imp.wasm");
    site.config(&format!(
        "audit = {:?}\n[mounts.imp]\nenv = {{ IMP_FRESH = \"60000\" }}\n{mount}\n",
        site.path("audit.jsonl")
    ));
    site
}

/// Two readings that a run of the guest could not give alike.
fn twice(client: &mut Client<Stdio>) -> [Value; 2] {
    [(); 2].map(|()| {
        let reading = client.read("belljar://imp/tick").unwrap();
        thread::sleep(Duration::from_millis(20));
        reading
    })
}

#[test]
fn a_fresh_answer_is_served_again_and_on_record() {
    let site = imp("");
    let mut client = site.stdio(Era::Modern);
    let [first, second] = twice(&mut client);
    assert_eq!(first["contents"], second["contents"], "read anew");
    assert_eq!(first["ttlMs"], 60_000);
    let left = second["ttlMs"].as_u64().unwrap();
    assert!((50_000..60_000).contains(&left), "{left}");
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
fn the_operator_caps_forbids_and_opens_the_cache() {
    let site = imp("cache = \"off\"");
    let [first, second] = twice(&mut site.stdio(Era::Modern));
    assert_ne!(first["contents"], second["contents"], "served again");
    assert_eq!(second["ttlMs"], 0, "a client may not keep it either");

    let site = imp("cache = \"300ms\"\ncache-scope = \"public\"");
    let mut client = site.stdio(Era::Modern);
    let [first, second] = twice(&mut client);
    assert_eq!(
        (&first["contents"], &first["ttlMs"], &first["cacheScope"]),
        (&second["contents"], &json!(300), &json!("public"))
    );
    thread::sleep(Duration::from_millis(400));
    assert_ne!(client.read("belljar://imp/tick").unwrap()["contents"], first["contents"], "served for too long");
}

#[test]
fn settings_of_the_cache_say_what_they_expect() {
    for (line, expected) in [
        ("cache = \"never\"", "mounts.imp.cache = \"never\": expected \"off\" or the longest time"),
        ("cache = \"40days\"", "at most 1day"),
        ("cache-scope = \"world\"", "expected \"private\" or \"public\""),
    ] {
        let site = imp(line);
        let output = site.run(&["check"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{line}: {said}");
    }
    let site = bare();
    for (line, expected) in [("poll = \"1ms\"", "watch.poll: expected 100ms to 1day"), ("pol = \"1s\"", "\"poll\"")] {
        site.config(&format!("[watch]\n{line}\n"));
        let output = site.run(&["check"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{line}: {said}");
    }
}

/// Who watches a resource and is told of a change reads what is new, however long the old answer was fresh for.
#[test]
fn a_change_that_was_told_ends_freshness() {
    let site = bare();
    site.mount_as("guest_imp", "imp.wasm");
    site.write("data/file", "old");
    let data = site.path("data");
    site.config(&format!("[mounts.imp]\nenv = {{ IMP_FRESH = \"3600000\" }}\nfs = {{ \"/data\" = {data:?} }}\n"));
    let uri = "belljar://imp/need/%252Fdata%252Ffile";
    let mut client = site.stdio(Era::Older);
    client.request("resources/subscribe", json!({ "uri": uri })).unwrap();
    for word in ["new", "newer", "newest"] {
        let before = client.text(uri);
        site.write("data/file", word);
        let told = client.told(Duration::from_secs(5)).unwrap();
        assert_eq!(told["method"], "notifications/resources/updated", "{told}");
        assert_ne!(client.text(uri), before);
        assert!(client.text(uri).contains(word), "{}", client.text(uri));
    }
}

/// Sixty-four who ask for the same at once are answered by one run; who asks for something else is not held up.
#[test]
fn identical_reads_run_once() {
    let site = imp("");
    let server = site.http();
    let mut others = server.client(Era::Modern);
    assert_eq!(others.text("belljar://imp/ok"), "fine");
    let readers: Vec<_> = (0..64)
        .map(|_| {
            let mut client = server.client(Era::Modern);
            thread::spawn(move || client.text("belljar://imp/sleep/700"))
        })
        .collect();
    let began = Instant::now();
    assert_eq!(others.text("belljar://imp/count"), "1");
    assert!(began.elapsed() < Duration::from_millis(600), "{:?}", began.elapsed());
    let texts: Vec<String> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    let by = Instant::now() + Duration::from_secs(5);
    while site.audit().len() < 66 && Instant::now() < by {
        thread::sleep(Duration::from_millis(20));
    }
    let records = site.audit();
    let asleep: Vec<&Value> = records.iter().filter(|record| record["reference"] == "sleep/700").collect();
    let runs = asleep.iter().filter(|record| record["served_from"].is_null()).count();
    assert_eq!((asleep.len(), runs), (64, 1), "each is on record");
}

/// A read that its caller withdraws is gone on with for those who wait for it too.
#[test]
fn whoever_leaves_takes_nothing_from_others() {
    let site = imp("");
    let mut client = site.stdio(Era::Modern);
    let uri = json!({ "uri": "belljar://imp/sleep/600" });
    let first = client.send("resources/read", uri.clone());
    thread::sleep(Duration::from_millis(100));
    let second = client.send("resources/read", uri);
    thread::sleep(Duration::from_millis(100));
    client.cancel(first);
    assert!(client.wait(second).unwrap()["contents"][0]["text"].is_string());
    client.close();
}

/// A list whose revision stands is not fetched again; one that has changed is.
#[test]
fn a_list_is_kept_while_its_revision_stands() {
    let site = bare();
    site.mount("files");
    site.write("notes/a.md", "# a");
    let notes = site.path("notes");
    site.config(&format!(
        "audit = {:?}\n[mounts.files]\nfs = {{ \"/notes\" = {notes:?} }}\n",
        site.path("audit.jsonl")
    ));
    let mut client = site.stdio(Era::Modern);
    let mut lists = |n: usize| {
        assert_eq!(client.uris().len(), n);
        thread::sleep(Duration::from_millis(1100));
        let count = |operation: &str| site.audit().iter().filter(|record| record["operation"] == operation).count();
        (count("list-resources"), count("catalog-revision"))
    };
    assert_eq!(lists(1), (1, 0), "the first list waits for nothing else");
    assert_eq!(lists(1), (2, 1), "from here on the revision is known");
    assert_eq!(lists(1), (2, 2));
    assert_eq!(lists(1), (2, 3));
    site.write("notes/b.md", "# b");
    assert_eq!(lists(2), (3, 4), "it has changed");
    assert_eq!(lists(2), (3, 5));
}

/// A walk goes on in the list in which it began, whatever becomes of that meanwhile.
#[test]
fn a_walk_sees_one_list() {
    let mut site = bare();
    site.mount_as("guest_imp", "imp.wasm");
    site.env("RUST_LOG", "error");
    site.config("[mounts.imp]\nenv = { IMP_LIST = \"endless\", IMP_REVISIONS = \"change\" }\n[mounts.imp.limits]\nresources = 3000\n");
    let mut client = site.stdio(Era::Modern);
    let mut other = site.stdio(Era::Modern);
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
    let expected: Vec<Value> = (0..3000).map(|n| json!(format!("belljar://imp/n/{n}"))).collect();
    assert_eq!(uris, expected);
    assert!(
        page["_meta"]["dev.belljar/notices"].to_string().contains("lists more than 3000 resources"),
        "{}",
        page["_meta"]
    );
}
