//! What the binary carries for new projects: the files of `sdk-guest/` and `wit/` that the build script found.

use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;

use super::language::Language;

/// What makes components of what compilers make for WASI 0.1; beside its own README.
const ADAPTER: (&str, &[u8]) = ("adapter/wasi_snapshot_preview1.reactor.wasm", WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);

mod generated {
    //! The names of the languages' folders, and every file with its path below `sdk-guest/` (`wit/` is beside it).
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

    pub(super) const fn all() -> (&'static [&'static str], &'static [(&'static str, &'static [u8])]) {
        (LANGUAGES, FILES)
    }
}

/// The folders' names, which `--lang` takes.
pub(super) fn names() -> &'static [&'static str] {
    generated::all().0
}

/// The files below `from`, each with the rest of its path; or the file `from` itself, with its own name.
pub(super) fn files(from: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    generated::all().1.iter().chain([&ADAPTER]).filter_map(move |(path, bytes)| {
        if *path == from {
            return Some((path.rsplit('/').next().unwrap_or(path), *bytes));
        }
        Some((path.strip_prefix(from)?.strip_prefix('/')?, *bytes))
    })
}

/// All languages, in the order of their names.
///
/// # Errors
/// Names the file that is wrong: that is a mistake of belljar's own.
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
