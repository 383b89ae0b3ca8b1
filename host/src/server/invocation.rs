//! Chooses the form of the commands that belljar suggests: the program's name or absolute path, and the flags that
//! select the configuration in use.
//!
//! The reader of a server's suggestions may be in another directory, and clients must not see paths of the host. So
//! `serve` saves the paths of its configuration in a place file below the state directory. Its commands have the name
//! of that file: `--place NAME`.

use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use belljar_join::PlaceFile;

use super::files::{self, FileError};
use super::location::{self, LocationArgs, NoWorkingDirectory};
use crate::model::{Digest, command};

/// Characters of a place's name.
const NAME_LENGTH: usize = 8;

/// There is no state directory.
#[derive(Debug, thiserror::Error)]
#[error("neither XDG_STATE_HOME nor HOME is set")]
pub(crate) struct NoState;

/// Why a place file cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceFileError {
    /// The path of the configuration is unknown.
    #[error(transparent)]
    Location(#[from] NoWorkingDirectory),
    /// A path is not UTF-8.
    #[error(transparent)]
    Text(#[from] serde_json::Error),
    /// There is no state directory.
    #[error(transparent)]
    NoState(#[from] NoState),
    /// The folder of place files cannot be created.
    #[error("\"{}\": {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why `--place NAME` selects no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceNameError {
    /// The name is wrong.
    #[error(
        "--place \"{name}\": {problem}; expected a name from a command that a belljar server suggested; use --config FILE instead"
    )]
    Wrong {
        /// The name, escaped.
        name: String,
        /// The reason.
        problem: PlaceNameProblem,
    },
    /// There is no state directory.
    #[error(transparent)]
    NoState(#[from] NoState),
    /// The place file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
}

/// The problem of a place's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlaceNameProblem {
    /// The name has another form.
    #[error("expected {NAME_LENGTH} hexadecimal digits")]
    Shape,
    /// There is no place file of that name.
    #[error("there is no such place")]
    Unknown,
    /// The place file cannot be parsed.
    #[error("its place file is damaged")]
    Damaged,
}

/// Suggests commands for the same user in the same directory: with the flags of this command line.
pub(crate) fn as_typed(at: &LocationArgs) {
    command::set_invocation(command::Invocation { program: program(true), flags: typed(at) });
}

/// Suggests commands for the reader of a server's messages: with `--place NAME`. `is_local`: the reader has started
/// this process, so the messages may contain its path.
pub(crate) fn from_anywhere(at: &LocationArgs, is_local: bool) {
    let place = write_place_file(at)
        .inspect_err(|why| tracing::warn!("suggested commands do not select the configuration: {why}"));
    let place = place.map(|name| vec!["--place".to_owned(), name]).unwrap_or_default();
    command::set_invocation(command::Invocation { program: program(is_local), flags: place });
}

/// The location flags of this command line.
fn typed(at: &LocationArgs) -> Vec<String> {
    let mut words = Vec::new();
    for (flag, path) in [("--config", &at.config), ("--plugins", &at.plugins)] {
        if let Some(path) = path {
            words.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
        }
    }
    words
}

/// Writes the place file of this configuration, if it does not exist yet, and returns its name.
pub(crate) fn write_place_file(at: &LocationArgs) -> Result<String, PlaceFileError> {
    let text = serde_json::to_string(&location::place(at)?)?;
    let digest = Digest::of(text.as_bytes()).to_string();
    let name: String = digest.trim_start_matches("sha256:").chars().take(NAME_LENGTH).collect();
    let file = place_files()?.join(&name);
    // The name is a hash of the contents, so an existing file never has to be updated.
    if !file.exists() {
        let folder = file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| PlaceFileError::Folder { path: folder.to_owned(), error })?;
        let lock = files::lock_for_writing(&[&file])?;
        files::replace(&lock, &file, &text, 0o600)?;
    }
    Ok(name)
}

/// The folder of place files.
fn place_files() -> Result<PathBuf, NoState> {
    belljar_join::place_files().ok_or(NoState)
}

impl LocationArgs {
    /// Replaces `--place NAME` by the paths in its place file.
    ///
    /// # Errors
    /// If there is no place of that name.
    pub(crate) fn resolved(self) -> Result<Self, PlaceNameError> {
        let Some(name) = &self.place else { return Ok(self) };
        let fail = |problem| PlaceNameError::Wrong { name: name.escape_debug().to_string(), problem };
        if name.len() != NAME_LENGTH || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(fail(PlaceNameProblem::Shape));
        }
        let text = files::read(&place_files()?.join(name))?.ok_or_else(|| fail(PlaceNameProblem::Unknown))?;
        let PlaceFile { config, plugins } = serde_json::from_str(&text).map_err(|_| fail(PlaceNameProblem::Damaged))?;
        Ok(Self { config: Some(config), plugins, place: None, is_config_optional: true })
    }
}

/// The name of the program that joins a running belljar.
pub(crate) const JOIN: &str = "belljar-join";

/// The path of [`JOIN`], beside this program. It may not be installed. `None` if the path of this program is unknown.
pub(crate) fn join_program() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "our own program, and the one beside it")]
    let own = std::env::current_exe().ok()?;
    Some(own.with_file_name(JOIN))
}

/// The name of this program: `belljar` if `PATH` finds this program under that name, otherwise its absolute path. A
/// reader who is not local always gets `belljar`.
fn program(is_local: bool) -> String {
    const SHORT: &str = "belljar";
    #[expect(clippy::disallowed_methods, reason = "our own program")]
    let own = std::env::current_exe().ok();
    #[expect(clippy::disallowed_methods, reason = "our own program")]
    let meta = |path: &Path| std::fs::metadata(path).ok();
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    #[expect(clippy::disallowed_methods, reason = "the shell's search path for programs")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path).map(|folder| folder.join(SHORT)).find_map(|file| meta(&file));
    let is_found = own.as_deref().and_then(meta).zip(first).is_some_and(|(own, first)| same(&own, &first));
    match own {
        Some(own) if !is_found && is_local => own.to_string_lossy().into_owned(),
        _ => SHORT.to_owned(),
    }
}
