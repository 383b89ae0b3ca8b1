//! Finds the configuration, the plugin directory, the cache and the state directory.

use std::io;
use std::path::{Path, PathBuf};

use belljar_join::{ConfigLocation, PlaceFile};
pub(crate) use belljar_join::{state_home, variable};
use clap::Args;

use super::files::{self, FileError};
use crate::config::{ConfigInput, FILE};

/// The arguments that locate the configuration and the components.
#[derive(Args, Clone, Default)]
pub(crate) struct LocationArgs {
    /// The directory with the .wasm components (default: "plugins" in the directory of the configuration).
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
    /// The configuration file (default: belljar.toml in the working directory, if it exists).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The configuration and plugin directory of a running server, by the name in the commands that the server
    /// suggests.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plugins", "config"])]
    pub(crate) place: Option<String>,
    /// True if the configuration file may be missing although `config` names it.
    #[arg(skip)]
    pub(crate) is_config_optional: bool,
}

/// The working directory cannot be determined.
#[derive(Debug, thiserror::Error)]
#[error("cannot find the working directory: {0}")]
pub(crate) struct NoWorkingDirectory(io::Error);

/// Why the configuration file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadConfigError {
    /// Its path is unknown.
    #[error(transparent)]
    Location(#[from] NoWorkingDirectory),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The path of the configuration file, which may not exist, and the working directory.
pub(crate) fn config_path(at: &LocationArgs) -> Result<(PathBuf, PathBuf), NoWorkingDirectory> {
    #[expect(clippy::disallowed_methods, reason = "the operator's working directory")]
    let directory = std::env::current_dir().map_err(NoWorkingDirectory)?;
    Ok((directory.join(at.config.as_deref().unwrap_or(Path::new(FILE))), directory))
}

/// The absolute paths of the configuration, which may not exist.
///
/// # Errors
/// If the working directory is unknown.
pub(crate) fn place(at: &LocationArgs) -> Result<PlaceFile, NoWorkingDirectory> {
    let (_, directory) = config_path(at)?;
    Ok(ConfigLocation { config: at.config.clone(), plugins: at.plugins.clone() }.absolute(&directory))
}

/// Reads the configuration file. Returns its path, which may not exist, and the input of
/// [`crate::config::Config::read`].
pub(crate) fn read_config_input(at: &LocationArgs) -> Result<(PathBuf, ConfigInput), ReadConfigError> {
    let (path, directory) = config_path(at)?;
    let file = files::read(&path)?.map(|text| (path.clone(), text));
    let home = variable("HOME");
    let own_directory = |name: &str, below: &str| {
        let base = variable(name).filter(|path| path.is_absolute()).or_else(|| Some(home.as_ref()?.join(below)));
        // Without a home directory, no directory can be created.
        base.unwrap_or_else(|| "/nonexistent".into()).join("belljar")
    };
    let (cache, state) = (own_directory("XDG_CACHE_HOME", ".cache"), own_directory("XDG_STATE_HOME", ".local/state"));
    Ok((path, ConfigInput { file, directory, plugins: at.plugins.clone(), home, cache, state }))
}
