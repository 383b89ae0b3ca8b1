//! What following changes costs: answers that are served again, pages of long lists, rounds over what is watched, and many
//! who ask for the same. Processor time of the server, through the real binary over stdio or HTTP.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first surprise, and prints"
)]

use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu, row};
use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::{Value, json};

const ROUNDS: usize = 15;

/// Processor time of `times` runs of `work`, a run.
fn cost(samples: &mut Samples, client: &mut Client<Stdio>, times: u32, mut work: impl FnMut(&mut Client<Stdio>)) {
    let id = client.wire().process.id();
    let before = process_cpu(id);
    (0..times).for_each(|_| work(client));
    samples.add(process_cpu(id) - before, times);
}

fn served_again(record: &mut Record) {
    let start = |cache: &str| {
        let site = Site::new();
        site.mount_as("guest_imp", "imp.wasm");
        site.config(&format!(
            "audit = \"off\"\n[mounts.imp]\nenv = {{ IMP_FRESH = \"3600000\" }}\ncache = {cache:?}\n"
        ));
        let client = site.stdio(Era::Modern);
        (site, client)
    };
    let ((_one, mut kept), (_two, mut anew)) = (start("1h"), start("off"));
    let (mut cached, mut fresh) = (Samples::default(), Samples::default());
    let read = |client: &mut Client<Stdio>| drop(client.read("belljar://imp/text/1024").expect("a reading"));
    (0..500).for_each(|_| [&mut kept, &mut anew].into_iter().for_each(read));
    for _ in 0..ROUNDS {
        cost(&mut fresh, &mut anew, 500, read);
        cost(&mut cached, &mut kept, 500, read);
    }
    println!("\nA read of 1 KiB over stdio: by a run of the guest, and from what was kept\n");
    println!("| | median us | middle half | ratio |\n|---|---|---|---|");
    println!("{}", row("a run of the guest", &fresh, &fresh));
    println!("{}", row("served again", &cached, &fresh));
    let group = "a read of 1 KiB over stdio, which its provider allows to be served again";
    record.row(group, "a run of the guest", "us", &fresh.0).row(group, "served again", "us", &cached.0);
}

/// A site with so many mounts that list so many resources each.
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
    let client = site.stdio(Era::Modern);
    (site, client)
}

/// Walks the whole list. Gives the cursor of its last page, and how many there were.
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

fn page(client: &mut Client<Stdio>, cursor: &Value) -> Value {
    let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
    client.request("resources/list", params).expect("a page")
}

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
        // What a page takes on its way is given back by then, or kept for the next one.
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

fn watched(record: &mut Record) {
    const STREAMS: usize = 10;
    const URIS: usize = 1000;
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    site.config("audit = \"off\"\n[watch]\npoll = \"500ms\"\n[mounts.sized]\nenv = { SIZED_COUNT = \"10000\" }\nlimits = { cpu = \"1000%\" }\n");
    let server = site.http();
    let mut client = server.client(Era::Modern);
    client.uris();
    let id = server.process.id();
    let rate = || {
        let (before, began) = (process_cpu(id), Instant::now());
        std::thread::sleep(Duration::from_secs(4));
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = (process_cpu(id) - before) as f64 / began.elapsed().as_nanos() as f64;
        share
    };
    let idle = rate();
    let streams: Vec<_> = (0..STREAMS)
        .map(|stream| {
            let uris: Vec<String> = (1..=URIS).map(|n| format!("belljar://sized/n/{:06}", stream * URIS + n)).collect();
            let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
            let stream = client.wire().open(&Era::Modern.message(9, "subscriptions/listen", filter));
            let stream = stream.expect("a stream");
            stream.next(Duration::from_secs(20)).expect("an acknowledgement");
            stream
        })
        .collect();
    let busy = rate();
    println!(
        "\n{} watched URIs of one mount that tells revisions, in {STREAMS} streams, a round each 0.5 s\n",
        STREAMS * URIS
    );
    println!(
        "| processor, nobody watches | processor, watched | a round, ms | a URI in a round, us |\n|---|---|---|---|"
    );
    let round = (busy - idle) * 0.5 * 1000.0;
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let each = round * 1000.0 / (STREAMS * URIS) as f64;
    println!("| {:.2}% | {:.2}% | {round:.2} | {each:.2} |", idle * 100.0, busy * 100.0);
    record.row("a look at 10,000 watched resources of one mount that tells revisions", "each of them", "us", &[each]);
    drop(streams);
}

fn shared(record: &mut Record) {
    const READERS: usize = 64;
    let site = Site::new();
    site.mount_as("guest_imp", "imp.wasm");
    site.config("audit = \"off\"\n[mounts.imp.limits]\nqueue = \"60s\"\ntime = \"60s\"\ncpu = \"1000%\"\n");
    let mut client = site.stdio(Era::Modern);
    let mut crowd = |uris: Vec<String>| {
        let id = client.wire().process.id();
        let before = process_cpu(id);
        let ids: Vec<u64> = uris.iter().map(|uri| client.send("resources/read", json!({ "uri": uri }))).collect();
        ids.into_iter().for_each(|id| drop(client.wait(id).expect("a reading")));
        process_cpu(id) - before
    };
    let (mut same, mut different) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        // 5 ms of sleep, so that all have asked before the first is answered, and 10 ms of work.
        same.add(crowd(vec!["belljar://imp/work/5/10".to_owned(); READERS]), 1);
        different.add(crowd((0..READERS).map(|n| format!("belljar://imp/work/{}/10", 5 + n)).collect()), 1);
    }
    println!("\n{READERS} readers at once, of a resource that takes 10 ms to make\n");
    println!("| | median us | middle half | ratio |\n|---|---|---|---|");
    println!("{}", row("different ones", &different, &different));
    println!("{}", row("the same one", &same, &different));
    let group = "64 readers at once, of a resource that takes 10 ms to make, all together";
    record.row(group, "of different ones", "us", &different.0).row(group, "of the same one", "us", &same.0);
}

fn main() {
    let mut record = Record::new();
    served_again(&mut record);
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
