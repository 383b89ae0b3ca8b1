//! Sites with many components, no two of the same bytes, whose compiled code is kept from one run of the bench to the next.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_tests::{Site, places, process};

/// The most mounts that are measured.
pub(crate) const MANY: usize = 1000;

/// Where compiled code is kept, and the key that it is authenticated with.
fn kept() -> PathBuf {
    places::target().join("scale")
}

/// The name of the mount of that number.
pub(crate) fn name(number: usize) -> String {
    format!("m{number:04}")
}

/// A component that is the same as every other one but for a custom section that no other one has: it has a digest of its
/// own, is compiled and kept on its own, and shares nothing with the others.
fn component(number: usize) -> Vec<u8> {
    let mut bytes = std::fs::read(places::component("guest_sized")).expect("a readable component");
    let (name, payload) = (b"number", number.to_le_bytes());
    let len = 1 + name.len() + payload.len();
    // Section 0; its length and that of its name take one byte each (LEB128, below 128).
    bytes.extend([0, u8::try_from(len).expect("a short section"), u8::try_from(name.len()).expect("a short name")]);
    bytes.extend(name);
    bytes.extend(payload);
    bytes
}

/// A site with that many different components, whose compiled code is looked for where [`compile`] has put it.
pub(crate) fn warm(count: usize) -> Site {
    let mut site = cold(count);
    site.share(&kept());
    site
}

/// Brings the components of a site, and all compiled code, into the kernel's memory: how fast a disk is should not matter,
/// and some machines give back what nobody has read for a minute.
pub(crate) fn bring(site: &Site) {
    for dir in [site.path("plugins"), kept().join("cache/belljar")] {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            drop(std::fs::read(entry.expect("an entry").path()));
        }
    }
}

/// A site with that many different components, and nothing compiled.
pub(crate) fn cold(count: usize) -> Site {
    let site = Site::new();
    (0..count).for_each(|number| site.drop_in(&format!("{}.wasm", name(number)), component(number)));
    // Records are kept, as an operator would.
    site.config("audit = \"audit.jsonl\"\nlist-time = \"60s\"\n");
    site
}

/// Compiles that many components ahead, those that an earlier run did not.
pub(crate) fn compile(count: usize) {
    let site = warm(count);
    let began = Instant::now();
    let output =
        process::run(site.command(site.arguments(&["check", "--compile", "--json"])), Duration::from_secs(3600));
    let compiled: serde_json::Value = serde_json::from_slice(&output.stdout).expect("what was compiled");
    let all = compiled.as_array().expect("an array");
    let mut digests: Vec<&str> = all.iter().filter_map(|one| one["digest"].as_str()).collect();
    digests.sort_unstable();
    digests.dedup();
    assert!(output.status.success() && digests.len() == count, "{}", String::from_utf8_lossy(&output.stderr));
    let new = all.iter().filter(|one| !one["milliseconds"].is_null()).count();
    println!(
        "{count} components of {} bytes, all different; code of {} bytes each; {new} of them compiled now, in {:.0} s",
        all[0]["size"],
        all[0]["code"],
        began.elapsed().as_secs_f64()
    );
}
