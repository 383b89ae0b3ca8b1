//! From the start of the process until everything is listed, and until something is read.

use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu};
use belljar_tests::{Client, Era, Site, Stdio};

use crate::site;

/// Entries that each component lists.
const EACH: usize = 3;

/// One start, in nanoseconds.
struct Started {
    /// Wall time until the list has the entries of all.
    listed: u64,
    /// Wall time until a read was answered after that.
    read: u64,
    /// Processor time by then, of the process that serves; where a second went by, of its ended threads too.
    cpu: u64,
    /// The same with processes that it started and that have ended, in hundredths of a second.
    ticks: u64,
}

fn label(count: usize) -> String {
    match count {
        1 => "1 component".to_owned(),
        1000 => "1,000 components".to_owned(),
        _ => format!("{count} components"),
    }
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn start(site: &Site, count: usize) -> Started {
    let began = Instant::now();
    let mut client = Client::<Stdio>::connect(site.silent_stdio(), Era::Modern);
    client.patience = Duration::from_secs(300);
    // While components are compiled, the list leaves them out, and says so.
    while client.resources().len() < count * EACH {
        std::thread::sleep(Duration::from_millis(20));
    }
    let listed = nanos(began);
    client.read(&format!("belljar://{}/text/1024", site::name(count - 1))).expect("a reading");
    let read = nanos(began);
    let process = &client.wire().process;
    let ticks = process.cpu_ticks();
    // The finer account knows nothing of threads that have ended, the other one counts in steps of 10 ms: both too little.
    let cpu = process_cpu(process.id()).max(ticks * 10_000_000);
    client.close();
    Started { listed, read, cpu, ticks }
}

/// Starts with compiled code in the cache.
pub(crate) fn warm(record: &mut Record, rounds: usize) {
    let sites = [1, 100, site::MANY].map(|count| (count, site::warm(count)));
    let mut all: Vec<[Samples; 3]> = sites.iter().map(|_| <[Samples; 3]>::default()).collect();
    for round in 0..=rounds {
        for ((count, site), samples) in sites.iter().zip(&mut all) {
            site::bring(site);
            let started = start(site, *count);
            // The first brings the rest of what is needed into memory.
            if round > 0 {
                for (samples, nanos) in samples.iter_mut().zip([started.listed, started.read, started.cpu]) {
                    samples.add(nanos, 1);
                }
            }
        }
    }
    println!("\nStarts with compiled code in the cache, from the start of the process\n");
    println!(
        "| components | until all are listed, ms | middle half | until a read is answered, ms | processor time by then, ms | processor time a component, us |\n|---|---|---|---|---|---|"
    );
    let least = all[0][2].median();
    for ((count, _), [listed, read, cpu]) in sites.iter().zip(&all) {
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let each = (*count > 1).then(|| (cpu.median() - least) / (*count - 1) as f64);
        println!(
            "| {count} | {:.1} | {:.1} - {:.1} | {:.1} | {:.1} | {} |",
            listed.median() / 1000.0,
            listed.quantile(0.25) / 1000.0,
            listed.quantile(0.75) / 1000.0,
            read.median() / 1000.0,
            cpu.median() / 1000.0,
            each.map_or("-".to_owned(), |each| format!("{each:.0}")),
        );
        let ms = |samples: &Samples| samples.0.iter().map(|us| us / 1000.0).collect::<Vec<_>>();
        record.row("start, warm cache", &label(*count), "ms", &ms(listed));
        record.note("wall time, from the start of the process until all are listed");
        record.row("start, warm cache, processor time", &label(*count), "ms", &ms(cpu));
    }
}

/// Starts with nothing compiled, once each: they take what compiling takes.
pub(crate) fn cold(record: &mut Record) {
    println!("\nStarts with nothing compiled\n");
    println!("| components | until all are listed, s | processor time, compilers included, s |\n|---|---|---|");
    for count in [1, 10, 100] {
        let started = start(&site::cold(count), count);
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let (listed, ticks) = (started.listed as f64 / 1e9, started.ticks as f64 / 100.0);
        println!("| {count} | {listed:.2} | {ticks:.2} |");
        record.row("start, nothing compiled", &label(count), "s", &[listed]).note("wall time; compiling takes it");
    }
}
