//! `belljar init`: writes a configuration with comments, and creates the plugin directory.

use std::process::ExitCode;

use super::output;
use crate::model::command;
use crate::server::failure::Failure;
use crate::server::location::{self, LocationArgs};
use crate::server::{files, log, shipped};

/// The help of `init`.
pub(super) const HELP: &str = "Examples:
  belljar init
  belljar init --config ~/belljar/belljar.toml";

/// The text of a new configuration.
const TEXT: &str = include_str!("init/belljar.toml");

/// The directory of components beside the configuration. [`TEXT`] names it.
const PLUGINS: &str = "plugins";

/// Writes the configuration, unless there is one.
pub(super) fn run(at: &LocationArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let (path, _) = location::config_path(at)?;
    let folder = path.parent().unwrap_or(&path);
    let plugins = at.plugins.clone().unwrap_or_else(|| folder.join(PLUGINS));
    #[expect(clippy::disallowed_methods, reason = "the directory that the operator named")]
    std::fs::create_dir_all(folder).and_then(|()| std::fs::create_dir_all(&plugins))?;
    let lock = files::lock_for_writing(&[&path])?;
    if path.exists() {
        return Err(Failure::Failed(format!("\"{}\" exists already; nothing was changed", path.display())));
    }
    let named =
        at.plugins.as_ref().map(|plugins| toml_edit::Value::from(plugins.to_string_lossy().as_ref()).to_string());
    let text = match named {
        Some(named) => TEXT.replacen("# plugins = \"plugins\"", &format!("plugins = {named}"), 1),
        None => TEXT.to_owned(),
    };
    files::replace(&lock, &path, text, 0o600)?;
    let names = shipped::names();
    let next = match names.is_empty() {
        true => format!("Put .wasm files into {}, or run: {}", plugins.display(), command::line(["add", "FILE.wasm"])),
        false => format!("To add a provider: {}\nInstalled are: {}", command::line(["add", "NAME"]), names.join(", ")),
    };
    output::print(&format!("Wrote {}.\n{next}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ConfigInput};

    /// Each example is valid when its comment sign is removed.
    #[test]
    fn the_text_is_a_valid_configuration_and_so_is_each_example() {
        let read = |text: &str| {
            let file = Some(("/etc/belljar.toml".into(), text.to_owned()));
            Config::read(ConfigInput {
                file,
                directory: "/".into(),
                home: Some("/root".into()),
                ..ConfigInput::default()
            })
        };
        assert!(read(TEXT).is_ok());
        let is_code = |line: &&str| line.starts_with("# ") && (line.contains(" = ") || line.starts_with("# ["));
        let examples: Vec<&str> = TEXT.lines().filter(is_code).map(|line| &line[2..]).collect();
        assert!(examples.len() > 5, "{examples:?}");
        let all = read(&examples.join("\n"));
        assert!(all.is_ok(), "{}", all.err().map(|error| error.to_string()).unwrap_or_default());
        assert!(TEXT.contains("# plugins = \"plugins\""));
    }
}
