//! Measures the time from `belljar add` of a component in a registry on this machine to its first answer, beside the same
//! component in the plugin directory. Both are cold: nothing is in a cache of belljar.
#![expect(
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench ends at the first error, and prints"
)]

use std::fs;
use std::time::Instant;

use belljar_benches::{Record, Samples};
use belljar_tests::{Artifact, Era, Registry, Site, places};

const ROUNDS: usize = 5;

/// The provider. Its component has 3 to 4 MiB.
const PROVIDER: &str = "tables";

/// Its grant: one table.
const CONFIG: &str = "audit = \"off\"\n[mounts.tables]\nfs = { \"/data\" = \"data\" }\n";

/// A site with a table to read.
fn site() -> Site {
    let site = Site::new();
    site.write("data/a.csv", "name,size\none,1\n");
    site
}

/// The nanoseconds since `began`.
fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Starts belljar, and reads the table.
fn read(site: &Site) {
    let mut client = site.stdio(Era::Stateless);
    assert!(client.text("belljar://tables/a.csv").contains("one"), "the table");
}

fn main() {
    let registry = Registry::start().expect("a registry; BELLJAR_SKIP must not name it");
    let component = fs::read(places::component(PROVIDER)).expect("a built provider");
    let size = component.len() as f64 / f64::from(1 << 20);
    let artifact = Artifact { component, version: "1.0.0".to_owned(), ..Artifact::default() };
    registry.push("acme/tables", "1.0.0", &artifact);
    let reference = registry.reference("acme/tables", "1.0.0");
    let (mut plain, mut fetched, mut added) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        let copied = site();
        copied.config(CONFIG);
        copied.mount(PROVIDER);
        let began = Instant::now();
        read(&copied);
        plain.add(since(began), 1000);

        let fresh = site();
        fresh.config("audit = \"off\"\n");
        let began = Instant::now();
        let output = fresh.run(&["add", &reference, "--fs", "/data=data", "--unsigned", "--yes"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        added.add(since(began), 1000);
        read(&fresh);
        fetched.add(since(began), 1000);
    }
    println!("\nFrom a cold start to the first read of a component of {size:.1} MiB, in milliseconds\n");
    println!("| | median | middle half | ratio |\n|---|---|---|---|");
    for (name, samples) in
        [("in the plugin directory", &plain), ("by `add` from a registry", &fetched), ("`add` alone", &added)]
    {
        println!("{}", belljar_benches::row(name, samples, &plain));
    }
    let group = "from a cold start to the first read of a component of 3 to 4 MiB";
    let mut record = Record::new();
    record.row(group, "in the plugin directory", "ms", &plain.0).row(group, "by add from a registry", "ms", &fetched.0);
    record.note(&format!("add alone {:.0} ms", added.median()));
    record.hand_over().expect("a file that can be written");
}
