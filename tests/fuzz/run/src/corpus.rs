//! Reads the corpus of a target, and writes inputs that broke an invariant to files.

use std::fs;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use crate::Target;

/// The directory of a target's corpus.
pub fn directory(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.name)
}

/// The corpus of a target in the repository, and the seeds from what was built.
///
/// # Panics
/// If the corpus is empty: mutations of no seed would be random bytes, which test little.
pub fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
    let directory = directory(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut seeds: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("a readable directory");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("a readable file"))
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{} is empty", directory.display());
    seeds.extend((target.built)());
    seeds
}

/// The build directory. `BELLJAR_TEST_TARGET` names another one than `target`.
fn build_directory() -> PathBuf {
    let named = std::env::var_os("BELLJAR_TEST_TARGET");
    named.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target"), PathBuf::from)
}

/// Writes an input that broke an invariant to a file. Returns a message with the input and the path of the file.
pub fn report(target: &Target, input: &[u8], why: &str) -> String {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(input);
    let directory = build_directory().join("fuzz/found");
    let file = directory.join(format!("{}-{hash:016x}", target.name));
    let kept = fs::create_dir_all(&directory).and_then(|()| fs::write(&file, input));
    let place = match kept {
        Ok(()) => {
            format!("it is in {}; to keep it, copy it into {}", file.display(), self::directory(target).display())
        }
        Err(error) => format!("it could not be written to {}: {error}", file.display()),
    };
    format!("{}: {why}\non the input b\"{}\"\n{place}", target.name, input.escape_ascii())
}
