//! Memory of an idle host, and what each mount adds to it.

use std::fs;

use belljar_benches::Record;
use belljar_tests::{Client, Era, Stdio};

use crate::site;

/// Resident memory, in KiB: all; of that what is the process's own; what is a file's, and could be read again.
#[derive(Clone, Copy)]
struct Resident([f64; 3]);

fn resident(client: &mut Client<Stdio>) -> Resident {
    let status = fs::read_to_string(format!("/proc/{}/status", client.wire().process.id())).expect("it runs");
    Resident(["VmRSS:", "RssAnon:", "RssFile:"].map(|name| {
        let field = status.lines().find_map(|line| line.strip_prefix(name));
        field.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).expect("a size in KiB")
    }))
}

/// What a host holds with so many different components: loaded, listed, and read from each.
fn stages(count: usize) -> Vec<(&'static str, Resident)> {
    let site = site::warm(count);
    let mut client = site.stdio(Era::Modern);
    // What belongs to nobody is answered when everything is loaded.
    client.read("belljar://nobody/").expect_err("there is no such mount");
    let mut all = vec![("loaded", resident(&mut client))];
    if count > 0 {
        client.uris();
        all.push(("and listed", resident(&mut client)));
        for number in 0..count {
            client.read(&format!("belljar://{}/text/1024", site::name(number))).expect("a reading");
        }
        all.push(("and read from", resident(&mut client)));
    }
    all
}

/// Prints what a host holds without mounts, and what each of 1, 100 and 1,000 different components adds.
pub(crate) fn idle(record: &mut Record) {
    let Resident(idle) = stages(0)[0].1;
    println!("\nMemory at rest\n\n| | resident | of it its own | of it of files |\n|---|---|---|---|");
    println!("| a host without mounts, MiB | {} |", cells(idle.map(|kib| kib / 1024.0), 1));
    record.row("memory, idle", "a host without mounts", "MiB", &[idle[0] / 1024.0]);
    for count in [1, 100, site::MANY] {
        for (stage, Resident(now)) in stages(count) {
            #[expect(clippy::cast_precision_loss, reason = "a count")]
            let each = [0, 1, 2].map(|at| (now[at] - idle[at]) / count as f64);
            println!("| each of {count} components, {stage}, KiB | {} |", cells(each, 0));
            if count == site::MANY && stage == "and read from" {
                record.row("memory, idle", "each mounted component", "MiB", &[each[0] / 1024.0]);
                record.note("of 1,000 different ones; each was loaded, listed and read from");
            }
        }
    }
}

fn cells(figures: [f64; 3], digits: usize) -> String {
    figures.map(|figure| format!("{figure:.digits$}")).join(" | ")
}
