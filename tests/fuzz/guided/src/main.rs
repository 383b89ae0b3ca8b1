//! Runs the target `BELLJAR_FUZZ_TARGET` under libFuzzer. With `BELLJAR_FUZZ_LIST=DIR` it runs none. It writes the seeds from
//! this build's components and the dictionary of each target into `DIR`. It prints the name, the longest input and the corpus
//! of each target, and ends.
#![no_main]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use belljar_fuzz_run::{Target, corpus, find};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> =
    LazyLock::new(|| find(all(), &std::env::var("BELLJAR_FUZZ_TARGET").unwrap_or_default()));

/// The targets of the host and of the providers.
fn all() -> &'static [Target] {
    static ALL: LazyLock<Vec<Target>> =
        LazyLock::new(|| [belljar_fuzz::TARGETS, belljar_fuzz_providers::TARGETS].concat());
    &ALL
}

fuzz_target!(
    init: {
        if let Ok(directory) = std::env::var("BELLJAR_FUZZ_LIST") {
            list(Path::new(&directory)).expect("a writable directory");
            std::process::exit(0);
        }
        LazyLock::force(&TARGET);
    },
    |input: &[u8]| (TARGET.run)(input)
);

fn list(directory: &Path) -> std::io::Result<()> {
    for target in all() {
        let own = directory.join(target.name);
        fs::create_dir_all(own.join("built"))?;
        for (name, seed) in (target.built)() {
            fs::write(own.join("built").join(name), seed)?;
        }
        let mut dictionary = String::new();
        for word in target.dictionary {
            let bytes = word.bytes().fold(String::new(), |mut all, byte| {
                let _ = write!(all, "\\x{byte:02x}");
                all
            });
            let _ = writeln!(dictionary, "\"{bytes}\"");
        }
        fs::write(own.join("dictionary"), dictionary)?;
        println!("{} {} {}", target.name, target.longest, corpus::directory(target).display());
    }
    Ok(())
}
