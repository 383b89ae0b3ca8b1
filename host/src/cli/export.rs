//! `belljar export`: writes the configuration, its lock and its components into one file, for another machine.

use std::path::Path;
use std::process::ExitCode;

use super::output;
use crate::catalog;
use crate::config::Config;
use crate::model::command;
use crate::model::error::show_bytes;
use crate::server::bundle::Bundle;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{directories, files, location, log};

/// The help of `export`.
pub(super) const HELP: &str = "Example:
  belljar export team.bundle
  belljar import team.bundle --config ~/belljar/belljar.toml

The bundle has the configuration, belljar.lock, policy.cedar and the components. It has no secret and no
key: the configuration only says where they are. Names of directories and of people are in it.";

/// Writes the bundle.
pub(super) fn run(at: &LocationArgs, target: &Path) -> Result<ExitCode, Failure> {
    log::start("warn");
    let (path, input) = location::read_config_input(at)?;
    let configuration = input.file.as_ref().map(|(_, text)| text.clone()).ok_or_else(|| {
        Failure::Failed(format!(
            "there is no configuration \"{}\"; to make one: {}",
            path.display(),
            command::line(["init"])
        ))
    })?;
    let config = Config::read(input)?;
    let components = read_components(&config)?;
    let (lock, policy) = (files::read(&config.lock)?, files::read(&config.policy_file)?);
    let count = components.len();
    let bundle = Bundle::new(&configuration, lock, policy, components)
        .map_err(|error| Failure::Failed(format!("{}: {}", path.display(), error.message())))?;
    let bytes = bundle.to_bytes().map_err(|error| Failure::Failed(error.to_string()))?;
    if target.exists() {
        return Err(Failure::Failed(format!("\"{}\" exists already; name another file", target.display())));
    }
    let write_lock = files::lock_for_writing(&[target])?;
    files::replace(&write_lock, target, &bytes, 0o600)?;
    let size = show_bytes(bytes.len() as u64);
    output::print(&format!("Wrote \"{}\": {count} components, {size}.\n", target.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The components in the plugin directory, by the names of their files.
fn read_components(config: &Config) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let dir = directories::open_plugins(config)?;
    let found = catalog::read_components(config, &dir, |_| true)?;
    let mut files: Vec<String> = found.into_iter().map(|one| one.file).collect();
    files.sort();
    files.dedup();
    let read = |file: String| {
        let (_, bytes) = super::inspect::read(&config.plugins.join(&file))?;
        Ok((file, bytes))
    };
    files.into_iter().map(read).collect()
}
