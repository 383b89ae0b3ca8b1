//! The paths that decide which belljar serves a configuration. Reads the environment and the names of files.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The name of the configuration file.
pub const FILE: &str = "belljar.toml";

/// The plugin directory, if neither the configuration nor the command line names one.
const PLUGINS: &str = "plugins";

/// The value of a variable of the environment that names a directory. `None` if it is empty or not set.
pub fn variable(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the operator's variables name the directories of files")]
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.into())
}

/// The default state directory. `None` if neither `XDG_STATE_HOME` nor `HOME` is set.
pub fn state_home() -> Option<PathBuf> {
    let base = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(variable("HOME")?.join(".local/state")))?.join("belljar"))
}

/// The folder of place files. `None` if there is no state directory.
pub fn place_files() -> Option<PathBuf> {
    Some(state_home()?.join("places"))
}

/// The canonical path, without symbolic links. The part of the path that does not exist is kept as it is.
pub fn real(path: &Path) -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "the operator's own files, behind links of the operator's")]
    let found = std::fs::canonicalize(path);
    found.unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    })
}

/// True if the directory belongs to this user, and others have no access to it.
///
/// # Errors
/// If it does not exist.
pub fn is_private(path: &Path) -> io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "belljar's own directory")]
    let meta = std::fs::metadata(path)?;
    Ok(meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0)
}

/// The contents of a place file: the absolute paths of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceFile {
    /// The configuration, which may not exist.
    pub config: PathBuf,
    /// The plugin directory. `None`: the configuration decides.
    pub plugins: Option<PathBuf>,
}

/// The arguments of a command that select a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigLocation {
    /// The value of `--config`.
    pub config: Option<PathBuf>,
    /// The value of `--plugins`.
    pub plugins: Option<PathBuf>,
}

impl ConfigLocation {
    /// The absolute paths, seen from the directory `working`.
    pub fn absolute(&self, working: &Path) -> PlaceFile {
        let config = working.join(self.config.as_deref().unwrap_or(Path::new(FILE)));
        let plugins = self.plugins.as_ref().map(|path| working.join(path));
        // Without a configuration, the default plugin directory is relative to the working directory.
        let plugins = plugins.or_else(|| (!config.exists()).then(|| working.join(PLUGINS)));
        PlaceFile { config, plugins }
    }
}
