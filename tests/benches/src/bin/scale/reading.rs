//! Reads and pages of the list, with one mount and with many.

use std::time::Duration;

use belljar_benches::{Record, Samples, process_cpu, row};
use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::{Value, json};

use crate::site::{self, MANY};

/// Reads of a round.
const READS: u32 = 400;

/// Pages of a round.
const PAGES: u32 = 5;

/// A site that is served.
struct Served {
    mounts: usize,
    /// The cursor of the second page.
    second: Value,
    client: Client<Stdio>,
    _site: Site,
}

/// Serves so many different components that list so many resources each, and walks the whole list once.
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
    let mut client = site.stdio(Era::Modern);
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

fn page(client: &mut Client<Stdio>, cursor: &Value) -> Value {
    let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
    client.request("resources/list", params).expect("a page")
}

/// Processor time of the server for `times` runs of `work`, a run.
fn cost(samples: &mut Samples, client: &mut Client<Stdio>, times: u32, mut work: impl FnMut(&mut Client<Stdio>, u32)) {
    let id = client.wire().process.id();
    let before = process_cpu(id);
    (0..times).for_each(|time| work(client, time));
    samples.add(process_cpu(id) - before, times);
}

fn read(client: &mut Client<Stdio>, number: usize) {
    client.read(&format!("belljar://{}/text/1024", site::name(number))).expect("a reading");
}

/// Prints what reads and pages cost, the cases in turn, round by round.
pub(crate) fn measure(record: &mut Record, rounds: usize) {
    let mut all = [(1, 1000), (100, 1000), (MANY, 1000)].map(|(mounts, resources)| serve(mounts, resources));
    let mut one: [Samples; 3] = Default::default();
    let mut around: [Samples; 3] = Default::default();
    let mut first: [Samples; 3] = Default::default();
    let mut second: [Samples; 3] = Default::default();
    for round in 0..=rounds {
        for (at, Served { mounts, second: cursor, client, .. }) in all.iter_mut().enumerate() {
            if round == 0 {
                // Each of them once, and one of them until it is warm.
                (0..*mounts).for_each(|number| read(client, number));
                (0..2 * READS).for_each(|_| read(client, *mounts / 2));
                continue;
            }
            cost(&mut one[at], client, READS, |client, _| read(client, *mounts / 2));
            let begin = round * READS as usize;
            cost(&mut around[at], client, READS, |client, time| read(client, (begin + time as usize) % *mounts));
            cost(&mut first[at], client, PAGES, |client, _| drop(page(client, &Value::Null)));
            // Of one mount there is one page.
            if !cursor.is_null() {
                cost(&mut second[at], client, PAGES, |client, _| drop(page(client, cursor)));
            }
        }
    }
    let tables = [
        ("reading at scale", "A read of 1 KiB, always of the same mount", &one, 0),
        ("reading at scale, around", "A read of 1 KiB, each of another mount than the last", &around, 0),
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
