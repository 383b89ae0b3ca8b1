//! Measures the processor time of the real binary for changing data, over stdio or HTTP: cached answers, pages of long
//! lists, polls of watched resources, and concurrent reads of one resource.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu, row};
use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::{Value, json};

const ROUNDS: usize = 15;

/// Runs `work` `times` times. Adds the processor time of the server for one run.
fn cost(samples: &mut Samples, client: &mut Client<Stdio>, times: u32, mut work: impl FnMut(&mut Client<Stdio>)) {
    let id = client.wire().process.id();
    let before = process_cpu(id);
    (0..times).for_each(|_| work(client));
    samples.add(process_cpu(id) - before, times);
}

/// Compares reads that run the provider with reads from the cache.
fn cached_answers(record: &mut Record) {
    let start = |cache: &str| {
        let site = Site::new();
        site.mount_as("guest_hostile", "hostile.wasm");
        site.config(&format!(
            "audit = \"off\"\n[mounts.hostile]\nenv = {{ HOSTILE_FRESH = \"3600000\" }}\ncache = {cache:?}\n"
        ));
        let client = site.stdio(Era::Stateless);
        (site, client)
    };
    let ((_one, mut with_cache), (_two, mut without_cache)) = (start("1h"), start("off"));
    let (mut cached, mut fresh) = (Samples::default(), Samples::default());
    let read = |client: &mut Client<Stdio>| drop(client.read("belljar://hostile/text/1024").expect("a reading"));
    (0..500).for_each(|_| [&mut with_cache, &mut without_cache].into_iter().for_each(read));
    for _ in 0..ROUNDS {
        cost(&mut fresh, &mut without_cache, 500, read);
        cost(&mut cached, &mut with_cache, 500, read);
    }
    println!("\nA read of 1 KiB over stdio: by a run of the guest, and from the cache\n");
    println!("| | median us | middle half | ratio |\n|---|---|---|---|");
    println!("{}", row("a run of the guest", &fresh, &fresh));
    println!("{}", row("served again", &cached, &fresh));
    let group = "a read of 1 KiB over stdio, which its provider allows to be served again";
    record.row(group, "a run of the guest", "us", &fresh.0).row(group, "served again", "us", &cached.0);
}

/// A site with `mounts` mounts that list `resources` resources each, and a client.
fn listing(mounts: usize, resources: usize) -> (Site, Client<Stdio>) {
    let site = Site::new();
    let mut config = "audit = \"off\"\ntotal-memory = \"2GiB\"\nlist-time = \"60s\"\n".to_owned();
    site.mount_as("guest_sized", "sized.wasm");
    for n in 0..mounts {
        config.push_str(&format!(
            "[mounts.m{n:04}]\ncomponent = \"sized.wasm\"\nenv = {{ SIZED_COUNT = \"{resources}\" }}\nlimits = {{ cpu = \"1000%\" }}\n"
        ));
    }
    site.config(&config);
    let client = site.stdio(Era::Stateless);
    (site, client)
}

/// Requests all pages of the list. Returns the cursor of the last page, and the number of resources.
fn walk(client: &mut Client<Stdio>) -> (Value, usize) {
    let (mut cursor, mut count) = (Value::Null, 0);
    loop {
        let page = page(client, &cursor);
        count += page["resources"].as_array().map_or(0, Vec::len);
        match &page["nextCursor"] {
            Value::Null => return (cursor, count),
            next => cursor = next.clone(),
        }
    }
}

/// Requests one page of the list: the first page if `cursor` is null.
fn page(client: &mut Client<Stdio>, cursor: &Value) -> Value {
    let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
    client.request("resources/list", params).expect("a page")
}

/// Measures the first and the second page of lists of different lengths. `cases` are (mounts, resources of each mount).
fn pages(record: &mut Record, title: &str, cases: &[(usize, usize)]) {
    println!("\n{title}\n");
    println!(
        "| mounts x resources | first walk, ms | memory for each resource, bytes | first page, us | next page, us | ratio |\n|---|---|---|---|---|---|"
    );
    let mut base = None;
    for (mounts, resources) in cases {
        let (_site, mut client) = listing(*mounts, *resources);
        client.patience = Duration::from_secs(300);
        let first = page(&mut client, &Value::Null);
        let before = client.wire().process.memory();
        let began = Instant::now();
        let (_, count) = walk(&mut client);
        let walked = began.elapsed();
        // The server has freed the memory of earlier pages, or reuses it. So the growth belongs to the cached list.
        let memory = client.wire().process.memory().saturating_sub(before);
        assert_eq!(count, mounts * resources);
        let next = first["nextCursor"].clone();
        let (mut at_first, mut at_next) = (Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            cost(&mut at_first, &mut client, 5, |client| drop(page(client, &Value::Null)));
            if !next.is_null() {
                cost(&mut at_next, &mut client, 5, |client| drop(page(client, &next)));
            }
        }
        let name = format!("{mounts} x {resources}");
        record.row(title, &name, "us", &at_first.0);
        record.note(&format!("first walk {} ms", walked.as_millis()));
        let ratio = at_first.median() / *base.get_or_insert_with(|| at_first.median());
        println!(
            "| {name} | {} | {} | {:.0} | {} | {ratio:.2}x |",
            walked.as_millis(),
            memory / u64::try_from(count).unwrap_or(1).max(1),
            at_first.median(),
            if next.is_null() { "-".to_owned() } else { format!("{:.0}", at_next.median()) },
        );
    }
}

/// Measures the polls of 10,000 watched resources.
fn watched(record: &mut Record) {
    const STREAMS: usize = 10;
    const URIS: usize = 1000;
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    site.config("audit = \"off\"\n[watch]\npoll = \"500ms\"\n[mounts.sized]\nenv = { SIZED_COUNT = \"10000\" }\nlimits = { cpu = \"1000%\" }\n");
    let server = site.http();
    let mut client = server.client(Era::Stateless);
    client.uris();
    let id = server.process.id();
    let rate = || {
        let (before, began) = (process_cpu(id), Instant::now());
        std::thread::sleep(Duration::from_secs(4));
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds far below 2^52")]
        let share = (process_cpu(id) - before) as f64 / began.elapsed().as_nanos() as f64;
        share
    };
    let idle = rate();
    let streams: Vec<_> = (0..STREAMS)
        .map(|stream| {
            let uris: Vec<String> = (1..=URIS).map(|n| format!("belljar://sized/n/{:06}", stream * URIS + n)).collect();
            let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
            let stream = client.wire().open(&Era::Stateless.message(9, "subscriptions/listen", filter));
            let stream = stream.expect("a stream");
            stream.next(Duration::from_secs(20)).expect("an acknowledgement");
            stream
        })
        .collect();
    let busy = rate();
    println!(
        "\n{} watched URIs of one mount that reports revisions, in {STREAMS} streams, one poll every 0.5 s\n",
        STREAMS * URIS
    );
    println!(
        "| processor, without subscriptions | processor, with subscriptions | one poll, ms | a URI in one poll, us |\n|---|---|---|---|"
    );
    let round = (busy - idle) * 0.5 * 1000.0;
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = round * 1000.0 / (STREAMS * URIS) as f64;
    println!("| {:.2}% | {:.2}% | {round:.2} | {each:.2} |", idle * 100.0, busy * 100.0);
    record.row("a look at 10,000 watched resources of one mount that tells revisions", "each of them", "us", &[each]);
    drop(streams);
}

/// Compares concurrent reads of one resource with concurrent reads of different resources.
fn shared(record: &mut Record) {
    const READERS: usize = 64;
    let site = Site::new();
    site.mount_as("guest_hostile", "hostile.wasm");
    site.config("audit = \"off\"\n[mounts.hostile.limits]\nqueue = \"60s\"\ntime = \"60s\"\ncpu = \"1000%\"\n");
    let mut client = site.stdio(Era::Stateless);
    let mut crowd = |uris: Vec<String>| {
        let id = client.wire().process.id();
        let before = process_cpu(id);
        let ids: Vec<u64> = uris.iter().map(|uri| client.send("resources/read", json!({ "uri": uri }))).collect();
        ids.into_iter().for_each(|id| drop(client.wait(id).expect("a reading")));
        process_cpu(id) - before
    };
    let (mut same, mut different) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        // The guest sleeps for 5 ms, so that all requests arrive before the first answer. Then it computes for 10 ms.
        same.add(crowd(vec!["belljar://hostile/work/5/10".to_owned(); READERS]), 1);
        different.add(crowd((0..READERS).map(|n| format!("belljar://hostile/work/{}/10", 5 + n)).collect()), 1);
    }
    println!("\n{READERS} concurrent reads; the guest computes each contents for 10 ms\n");
    println!("| | median us | middle half | ratio |\n|---|---|---|---|");
    println!("{}", row("of different resources", &different, &different));
    println!("{}", row("of the same resource", &same, &different));
    let group = "64 readers at once, of a resource that takes 10 ms to make, all together";
    record.row(group, "of different ones", "us", &different.0).row(group, "of the same one", "us", &same.0);
}

fn main() {
    let mut record = Record::new();
    cached_answers(&mut record);
    pages(
        &mut record,
        "A page of the list, of at most 1,000 entries, over stdio: how it grows with the list",
        &[(1, 1000), (1, 10), (1, 10_000), (1, 100_000), (1, 1_000_000)],
    );
    pages(&mut record, "A page of the list, how it grows with the mounts", &[(1, 1000), (100, 1000), (1000, 1000)]);
    watched(&mut record);
    shared(&mut record);
    record.hand_over().expect("a file that can be written");
}
