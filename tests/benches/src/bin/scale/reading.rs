//! Measures reads and pages of the list, with one mount and with many.

use std::time::Duration;

use belljar_benches::{Record, Samples, process_cpu, row};
use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::{Value, json};

use crate::site::{self, MANY};

/// The number of reads in a round.
const READS: u32 = 400;

/// The number of pages in a round.
const PAGES: u32 = 5;

/// A running server, with a client.
struct Served {
    mounts: usize,
    /// The cursor of the second page.
    second: Value,
    client: Client<Stdio>,
    _site: Site,
}

/// Serves `mounts` different components with `resources` resources each. Requests the complete list once.
fn serve(mounts: usize, resources: usize) -> Served {
    let site = site::warm(mounts);
    let mut config = "audit = \"audit.jsonl\"\ntotal-memory = \"2GiB\"\nlist-time = \"60s\"\n".to_owned();
    for number in 0..mounts {
        let name = site::name(number);
        config.push_str(&format!(
            "[mounts.{name}]\nenv = {{ SIZED_COUNT = \"{resources}\" }}\nlimits = {{ cpu = \"1000%\" }}\n"
        ));
    }
    site.config(&config);
    let mut client = site.stdio(Era::Stateless);
    client.patience = Duration::from_secs(300);
    let second = page(&mut client, &Value::Null)["nextCursor"].clone();
    let (mut cursor, mut count) = (Value::Null, 0);
    loop {
        let page = page(&mut client, &cursor);
        count += page["resources"].as_array().map_or(0, Vec::len);
        match &page["nextCursor"] {
            Value::Null => break,
            next => cursor = next.clone(),
        }
    }
    assert_eq!(count, mounts * resources, "entries of all mounts");
    Served { mounts, second, client, _site: site }
}

/// Requests one page of the list: the first page if `cursor` is null.
fn page(client: &mut Client<Stdio>, cursor: &Value) -> Value {
    let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
    client.request("resources/list", params).expect("a page")
}

/// Runs `work` `times` times. Adds the processor time of the server for one run.
fn cost(samples: &mut Samples, client: &mut Client<Stdio>, times: u32, mut work: impl FnMut(&mut Client<Stdio>, u32)) {
    let id = client.wire().process.id();
    let before = process_cpu(id);
    (0..times).for_each(|time| work(client, time));
    samples.add(process_cpu(id) - before, times);
}

/// Reads 1 KiB from the mount with this number.
fn read(client: &mut Client<Stdio>, number: usize) {
    client.read(&format!("belljar://{}/text/1024", site::name(number))).expect("a reading");
}

/// Measures and prints the cost of reads and pages. Each round measures all cases, one after the other.
pub(crate) fn measure(record: &mut Record, rounds: usize) {
    let mut all = [(1, 1000), (100, 1000), (MANY, 1000)].map(|(mounts, resources)| serve(mounts, resources));
    let mut one: [Samples; 3] = Default::default();
    let mut rotating: [Samples; 3] = Default::default();
    let mut first: [Samples; 3] = Default::default();
    let mut second: [Samples; 3] = Default::default();
    for round in 0..=rounds {
        for (at, Served { mounts, second: cursor, client, .. }) in all.iter_mut().enumerate() {
            if round == 0 {
                // Warm up: read from each mount once, and from one mount many times.
                (0..*mounts).for_each(|number| read(client, number));
                (0..2 * READS).for_each(|_| read(client, *mounts / 2));
                continue;
            }
            cost(&mut one[at], client, READS, |client, _| read(client, *mounts / 2));
            let begin = round * READS as usize;
            cost(&mut rotating[at], client, READS, |client, time| read(client, (begin + time as usize) % *mounts));
            cost(&mut first[at], client, PAGES, |client, _| drop(page(client, &Value::Null)));
            // The list of one mount has one page.
            if !cursor.is_null() {
                cost(&mut second[at], client, PAGES, |client, _| drop(page(client, cursor)));
            }
        }
    }
    let tables = [
        ("reading at scale", "A read of 1 KiB, always of the same mount", &one, 0),
        ("reading at scale, around", "A read of 1 KiB, each of another mount than the last", &rotating, 0),
        ("listing at scale, first page", "The first page of the list, 1,000 entries", &first, 0),
        ("listing at scale, second page", "The second page of the list", &second, 1),
    ];
    for (group, title, samples, base) in tables {
        println!("\n{title}\n\n| | us CPU of the server, median | middle half | ratio |\n|---|---|---|---|");
        for (served, own) in all.iter().zip(samples).skip(base) {
            let label = match served.mounts {
                1 => "1 mount",
                MANY => "1,000 mounts, 1,000,000 resources",
                _ => "100 mounts",
            };
            println!("{}", row(label, own, &samples[base]));
            record.row(group, label, "us", &own.0).note(title);
        }
    }
}
