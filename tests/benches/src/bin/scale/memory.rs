//! Memory of an idle host, and what each mount adds to it.

use std::fs;

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

/// Prints what a host holds without mounts, and what each of 100 and of 1,000 different components adds: loaded, listed, and read from.
pub(crate) fn idle() {
    println!("\nMemory at rest, MiB for the host without a mount, KiB for each mount\n");
    println!("| | resident | of it its own | of it of files |\n|---|---|---|---|");
    let mut base = None;
    for count in [0, 1, 100, site::MANY] {
        let site = site::warm(count);
        let mut client = site.stdio(Era::Modern);
        // What belongs to nobody is answered when everything is loaded.
        client.read("belljar://nobody/").expect_err("there is no such mount");
        let mut show = |what: &str, now: Resident| {
            let Resident(base) = *base.get_or_insert(now);
            let divisor = if count == 0 { 1024.0 } else { f64::from(u32::try_from(count).expect("a small number")) };
            let cells = now.0.iter().zip(base).map(|(now, base)| match count {
                0 => format!("{:.1}", now / divisor),
                _ => format!("{:.0}", (now - base) / divisor),
            });
            println!("| {what} | {} |", cells.collect::<Vec<_>>().join(" | "));
        };
        let label = |what: &str| format!("{count} components, {what}");
        let loaded = resident(&mut client);
        show(&label("loaded"), loaded);
        if count > 0 {
            client.uris();
            let listed = resident(&mut client);
            show(&label("and listed"), listed);
            for number in 0..count {
                client.read(&format!("belljar://{}/text/1024", site::name(number))).expect("a reading");
            }
            let read = resident(&mut client);
            show(&label("and read from"), read);
        }
    }
}
