//! The files for new projects that are embedded in the binary: the build script selects them from `sdk-guest/` and
//! `wit/`.

use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;

use super::language::Language;

/// The adapter that turns a WASI 0.1 module into a component. It is in the folder of its README.
const ADAPTER: (&str, &[u8]) = ("adapter/wasi_snapshot_preview1.reactor.wasm", WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);

mod generated {
    //! The names of the languages' folders, and every file with its path below `sdk-guest/`; `wit/` keeps its own
    //! prefix.
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

    pub(super) const fn all() -> (&'static [&'static str], &'static [(&'static str, &'static [u8])]) {
        (LANGUAGES, FILES)
    }
}

/// The names of the languages' folders, which are valid values of `--lang`.
pub(super) fn names() -> &'static [&'static str] {
    generated::all().0
}

/// The files below the folder `from`, each with its path in that folder. If `from` is a file, that file with its name.
pub(super) fn files(from: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    generated::all().1.iter().chain([&ADAPTER]).filter_map(move |(path, bytes)| {
        if *path == from {
            return Some((path.rsplit('/').next().unwrap_or(path), *bytes));
        }
        Some((path.strip_prefix(from)?.strip_prefix('/')?, *bytes))
    })
}

/// All languages, sorted by name.
///
/// # Errors
/// Names the malformed file. It is embedded, so this is a bug of belljar.
pub(super) fn languages() -> Result<Vec<Language>, String> {
    names()
        .iter()
        .map(|name| {
            let file = format!("{name}/language.toml");
            let text = files(&file).next().and_then(|(_, bytes)| std::str::from_utf8(bytes).ok()).unwrap_or_default();
            Language::parse(name, text).map_err(|why| format!("sdk-guest/{file}: {why}"))
        })
        .collect()
}
