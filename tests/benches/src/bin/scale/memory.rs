//! Measures the memory of an idle host, and the memory that each mount adds.

use std::fs;

use belljar_benches::{Record, tree};
use belljar_tests::{Client, Era, Stdio};

use crate::site;

/// Resident memory in KiB of belljar and of its worker processes: the total, the anonymous part (`RssAnon`), and the pages of files (`RssFile`). The kernel
/// can drop pages of files and read them again.
#[derive(Clone, Copy)]
struct Resident([f64; 3]);

fn resident(client: &mut Client<Stdio>) -> Resident {
    let of = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
        ["VmRSS:", "RssAnon:", "RssFile:"].map(|name| {
            let field = status.lines().find_map(|line| line.strip_prefix(name));
            field.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).expect("a size in KiB")
        })
    };
    let all = tree::processes(client.wire().process.id()).into_iter().map(of);
    Resident(all.fold([0.0; 3], |[a, b, c], [x, y, z]| [a + x, b + y, c + z]))
}

/// The memory of a host with `count` different components: after loading, after listing, and after a read from each.
fn stages(count: usize) -> Vec<(&'static str, Resident)> {
    let site = site::warm(count);
    let mut client = site.stdio(Era::Stateless);
    // belljar answers a read of an unknown mount only after all components are loaded.
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

/// Prints the memory of a host without mounts, and the memory that each of 1, 100 and 1,000 different components adds.
pub(crate) fn idle(record: &mut Record) {
    let Resident(idle) = stages(0)[0].1;
    println!("\nMemory of an idle host\n\n| | resident | anonymous | pages of files |\n|---|---|---|---|");
    println!("| a host without mounts, MiB | {} |", cells(idle.map(|kib| kib / 1024.0), 1));
    record.row("memory, idle", "a host without mounts", "MiB", &[idle[0] / 1024.0]);
    for count in [1, 100, site::MANY] {
        for (stage, Resident(now)) in stages(count) {
            #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
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
