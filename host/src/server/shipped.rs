//! The providers that are installed with belljar.

use std::path::PathBuf;

use super::location;

/// The variable that names the directory of providers.
const VARIABLE: &str = "BELLJAR_PROVIDERS";

/// The places of providers, relative to the directory of this program: a package's, an archive's, and those of
/// `cargo xtask build`.
const PLACES: [&str; 3] = ["../lib/belljar/providers", "providers", "../plugins"];

/// The directory of the installed providers. `None` if there is none.
pub(crate) fn directory() -> Option<PathBuf> {
    if let Some(named) = location::variable(VARIABLE) {
        return Some(named);
    }
    PLACES.iter().filter_map(|place| beside_program(place)).find(|directory| directory.is_dir())
}

/// A path relative to the directory of this program. `None` if the path of this program is unknown.
fn beside_program(place: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "our own program")]
    let own = std::env::current_exe().ok()?;
    Some(own.with_file_name("").join(place))
}

/// The directory of the compiled code in belljar's package. `None` if there is none.
///
/// This code runs outside of the sandbox. So no variable names the directory, and it is in no place where people drop
/// downloaded files.
pub(crate) fn compiled_code() -> Option<PathBuf> {
    let [package, ..] = PLACES;
    Some(beside_program(package)?.join("compiled")).filter(|directory| directory.is_dir())
}

/// The names of the installed providers, sorted.
pub(crate) fn names() -> Vec<String> {
    let Some(directory) = directory() else { return Vec::new() };
    #[expect(clippy::disallowed_methods, reason = "the directory of installed providers")]
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let stem = |entry: std::fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".wasm")?.to_owned());
    let mut names: Vec<String> = entries.filter_map(stem).collect();
    names.sort();
    names
}

/// The file of an installed provider. `None` if there is none of that name.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    names()
        .iter()
        .any(|known| known == name)
        .then(|| directory().map(|directory| directory.join(format!("{name}.wasm"))))?
}
