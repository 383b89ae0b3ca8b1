//! Sites with many components. All components have different bytes. The compiled code stays in a directory, so that the
//! next run of the bench need not compile again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_tests::{Site, places, process};

/// The most mounts that are measured.
pub(crate) const MANY: usize = 1000;

/// The directory of the compiled code, and of the key that authenticates it.
fn code_directory() -> PathBuf {
    places::target().join("scale")
}

/// The name of the mount with this number.
pub(crate) fn name(number: usize) -> String {
    format!("m{number:04}")
}

/// The bytes of a component. The components differ only in a custom section, which holds `number`. So each component
/// has another digest, and shares no compiled code with the others.
fn component(number: usize) -> Vec<u8> {
    let mut bytes = std::fs::read(places::component("guest_sized")).expect("a readable component");
    let (name, payload) = (b"number", number.to_le_bytes());
    let len = 1 + name.len() + payload.len();
    // Section 0 is a custom section. The length of the section and the length of its name take one byte each (LEB128,
    // below 128).
    bytes.extend([0, u8::try_from(len).expect("a short section"), u8::try_from(name.len()).expect("a short name")]);
    bytes.extend(name);
    bytes.extend(payload);
    bytes
}

/// A site with `count` different components, and with the compiled code of [`compile`].
pub(crate) fn warm(count: usize) -> Site {
    let mut site = cold(count);
    site.share(&code_directory());
    site
}

/// Reads the components of a site and all compiled code, so that they are in the kernel's page cache. Otherwise the
/// speed of the disk would change the figures, because some machines drop unused pages after a minute.
pub(crate) fn fill_page_cache(site: &Site) {
    for dir in [site.path("plugins"), code_directory().join("cache/belljar")] {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            drop(std::fs::read(entry.expect("an entry").path()));
        }
    }
}

/// A site with `count` different components, and without compiled code.
pub(crate) fn cold(count: usize) -> Site {
    let site = Site::new();
    (0..count).for_each(|number| site.drop_in(&format!("{}.wasm", name(number)), component(number)));
    // Write the audit record, as in production.
    site.config("audit = \"audit.jsonl\"\nlist-time = \"60s\"\n");
    site
}

/// Compiles `count` components, except those that an earlier run has compiled.
pub(crate) fn compile(count: usize) {
    let site = warm(count);
    let began = Instant::now();
    let output =
        process::run(site.command(site.arguments(&["check", "--compile", "--json"])), Duration::from_secs(3600));
    let compiled: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the JSON of `check --compile`");
    let all = compiled.as_array().expect("an array");
    let mut digests: Vec<&str> = all.iter().filter_map(|one| one["digest"].as_str()).collect();
    digests.sort_unstable();
    digests.dedup();
    assert!(output.status.success() && digests.len() == count, "{}", String::from_utf8_lossy(&output.stderr));
    let new = all.iter().filter(|one| !one["milliseconds"].is_null()).count();
    println!(
        "{count} different components of {} bytes; compiled code of {} bytes each; {new} of them compiled now, in {:.0} s",
        all[0]["size"],
        all[0]["code"],
        began.elapsed().as_secs_f64()
    );
}
