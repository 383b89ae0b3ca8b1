//! Measures tools and skills.
//!
//! - The call of a tool that returns 1 KiB, compared with a read of 1 KiB of the same component, over HTTP.
//! - The list of 100 skills with 2,000 files: the first one, and the next ones while nothing changes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

use std::time::Instant;

use belljar_benches::{Record, Samples, process_cpu, row};
use belljar_tests::{Client, Era, Http, Site};
use serde_json::{Value, json};

/// Requests of one measurement of processor time. Few, so that both kinds are measured at the same moments of a busy machine.
const BATCH: u32 = 250;

/// Measurements of processor time in each round.
const BATCHES: u32 = 8;

/// Skills, and files of each.
const SKILLS: usize = 100;
const FILES: usize = 20;

fn read(client: &mut Client<Http>) {
    client.read("belljar://primitives/sized").expect("a reading");
}

fn call(client: &mut Client<Http>) {
    let result =
        client.request("tools/call", json!({ "name": "primitives_sized", "arguments": {} })).expect("a result");
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert_eq!(text.len(), 1024);
}

/// Calls of a tool, compared with reads.
fn calls(record: &mut Record, rounds: u32) {
    let site = Site::new();
    site.mount_as("guest_primitives", "primitives.wasm");
    // Without this, a client may call 20 tools in a second.
    site.config("[callers]\nrate = 1000000\nburst = 1000000\n");
    let server = site.http();
    let mut client = Client::connect(server.wire(Era::Stateless), Era::Stateless);
    let mut samples = [Samples::default(), Samples::default()];
    for batch in 0..=rounds * BATCHES {
        for (one, samples) in [read as fn(&mut Client<Http>), call].iter().zip(&mut samples) {
            let before = process_cpu(server.process.id());
            (0..BATCH).for_each(|_| one(&mut client));
            // The first one warms up.
            if batch > 0 {
                samples.add(process_cpu(server.process.id()) - before, BATCH);
            }
        }
    }
    println!("\n| 1 KiB over HTTP | us CPU of the server, median | middle half | ratio |\n|---|---|---|---|");
    for (name, own) in ["a read", "a call of a tool"].iter().zip(&samples) {
        println!("{}", row(name, own, &samples[0]));
        record.row("1 KiB by a tool", name, "us", &own.0);
    }
}

/// The number of skills on all pages.
fn list(client: &mut Client<Http>) -> usize {
    let (mut count, mut cursor) = (0, None::<Value>);
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = client.request("skills/list", params).expect("a page");
        count += page["skills"].as_array().expect("skills").len();
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => return count,
        }
    }
}

/// Lists of skills: the first one of a server, and others while nothing changes.
fn skills(record: &mut Record, rounds: u32) {
    let (mut first, mut again) = (Samples::default(), Samples::default());
    for _ in 0..rounds.max(1) {
        let site = Site::new();
        site.mount("files");
        for skill in 0..SKILLS {
            let name = format!("skill-{skill}");
            let text = format!(
                "---\nname: {name}\ndescription: Does something useful. Use it for the number {skill}.\n---\n\n# How\n"
            );
            site.write(format!("skills/{name}/SKILL.md"), text);
            for file in 1..FILES {
                site.write(format!("skills/{name}/references/{file}.md"), "x".repeat(2048));
            }
        }
        let folder = site.path("skills");
        site.config(&format!("[mounts.files]\nskills = true\nfs = {{ \"/files\" = {folder:?} }}\n"));
        site.run(&["trust", "files"]);
        let server = site.http();
        let mut client = Client::connect(server.wire(Era::Stateless), Era::Stateless);
        // The component is compiled before.
        client.request("resources/list", json!({})).expect("a list");
        let began = Instant::now();
        assert_eq!(list(&mut client), SKILLS);
        first.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), 1);
        for _ in 0..10 {
            let began = Instant::now();
            assert_eq!(list(&mut client), SKILLS);
            again.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), 1);
        }
    }
    println!(
        "\n| {SKILLS} skills, {} files | us until the whole list | middle half | ratio |\n|---|---|---|---|",
        SKILLS * FILES
    );
    for (name, own) in [("the first list", &first), ("a list when nothing changed", &again)] {
        println!("{}", row(name, own, &first));
        record.row("skills", name, "us", &own.0);
    }
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(7);
    let mut record = Record::new();
    calls(&mut record, rounds);
    skills(&mut record, rounds.min(5));
    record.hand_over().expect("a file that can be written");
}
