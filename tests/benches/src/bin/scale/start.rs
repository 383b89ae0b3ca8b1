//! Measures the time from the start of the process until the list is complete, and until a read is answered.

use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples, process_cpu};
use belljar_tests::{Client, Era, Site, Stdio};

use crate::site;

/// The number of entries that each component lists.
const EACH: usize = 3;

/// The measurements of one start. Times are in nanoseconds from the start of the process.
struct Started {
    /// The wall-clock time until the list has the entries of all components.
    listed: u64,
    /// The wall-clock time until the answer to a read, which follows the list.
    read: u64,
    /// The processor time of the server until then: the larger of two counts, see [`start`].
    cpu: u64,
    /// The processor time of the server and its ended child processes until then, in hundredths of a second.
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

/// Starts a server with `count` components, and measures the start.
fn start(site: &Site, count: usize) -> Started {
    let began = Instant::now();
    let mut client = Client::<Stdio>::connect(site.silent_stdio(), Era::Stateless);
    client.patience = Duration::from_secs(300);
    // The list lacks components that are still being compiled.
    while client.resources().len() < count * EACH {
        std::thread::sleep(Duration::from_millis(20));
    }
    let listed = nanos(began);
    client.read(&format!("belljar://{}/text/1024", site::name(count - 1))).expect("a reading");
    let read = nanos(began);
    let process = &client.wire().process;
    let ticks = process.cpu_ticks();
    // `process_cpu` counts nanoseconds, but lacks the time of ended threads. `cpu_ticks` counts only full steps of 10
    // ms. Both figures can only be too small, so take the larger one.
    let cpu = process_cpu(process.id()).max(ticks * 10_000_000);
    client.close();
    Started { listed, read, cpu, ticks }
}

/// Measures starts with compiled code in the cache.
pub(crate) fn warm(record: &mut Record, rounds: usize) {
    let sites = [1, 100, site::MANY].map(|count| (count, site::warm(count)));
    let mut all: Vec<[Samples; 3]> = sites.iter().map(|_| <[Samples; 3]>::default()).collect();
    for round in 0..=rounds {
        for ((count, site), samples) in sites.iter().zip(&mut all) {
            site::fill_page_cache(site);
            let started = start(site, *count);
            // Drop the first start. It brings other files into the page cache, such as the binary.
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
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
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

/// Measures starts without compiled code, once for each number of components. Compilation takes nearly all of the time.
pub(crate) fn cold(record: &mut Record) {
    println!("\nStarts without compiled code\n");
    println!("| components | until all are listed, s | processor time, compilers included, s |\n|---|---|---|");
    for count in [1, 10, 100] {
        let started = start(&site::cold(count), count);
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let (listed, ticks) = (started.listed as f64 / 1e9, started.ticks as f64 / 100.0);
        println!("| {count} | {listed:.2} | {ticks:.2} |");
        record.row("start, nothing compiled", &label(count), "s", &[listed]).note("wall time; compiling takes it");
    }
}
