//! The unit of the user's systemd that runs belljar: it starts with the session, and again after a crash.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use belljar_join::Instance;

use crate::model::text;
use crate::server::files::{self, FileError};
use crate::server::location;

/// Why systemd does not start or stop belljar.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnitError {
    /// There is no directory for the unit.
    #[error("neither XDG_CONFIG_HOME nor HOME is set")]
    NoHome,
    /// The directory of the user's units cannot be created.
    #[error("\"{}\": {error}", path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The unit cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// `systemctl` cannot be run.
    #[error("systemctl cannot be run: {0}; to start belljar without systemd: belljar up --background")]
    NoProgram(io::Error),
    /// `systemctl` fails. Holds its arguments and what it said.
    #[error("systemctl --user {arguments} failed: {said}; to start belljar without systemd: belljar up --background")]
    Failed {
        /// The arguments.
        arguments: String,
        /// The message of `systemctl`.
        said: String,
    },
}

/// True if the user's systemd runs.
pub(crate) fn is_available() -> bool {
    location::variable("XDG_RUNTIME_DIR").is_some_and(|runtime| runtime.join("systemd/private").exists())
}

/// The name of the unit of the belljar with this id.
fn name_of(id: &str) -> String {
    format!("belljar-{id}")
}

/// The command that shows the log of a unit.
pub(super) fn log_of(id: &str) -> String {
    format!("journalctl --user --unit {}", name_of(id))
}

/// The unit of one belljar.
pub(super) struct UserUnit {
    name: String,
    path: PathBuf,
}

impl UserUnit {
    /// The unit of the belljar with this id.
    ///
    /// # Errors
    /// If there is no directory for it.
    pub(super) fn of(id: &str) -> Result<Self, UnitError> {
        let base = location::variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let base = base.or_else(|| Some(location::variable("HOME")?.join(".config"))).ok_or(UnitError::NoHome)?;
        let name = format!("{}.service", name_of(id));
        Ok(Self { path: base.join("systemd/user").join(&name), name })
    }

    /// Writes the unit, and starts it now and at each login.
    ///
    /// # Errors
    /// If it cannot be written, or systemd refuses.
    pub(super) fn start(&self, instance: &Instance) -> Result<(), UnitError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        #[expect(clippy::disallowed_methods, reason = "the directory of the user's units")]
        let created = std::fs::create_dir_all(folder);
        created.map_err(|error| UnitError::Folder { path: folder.to_owned(), error })?;
        let lock = files::lock_for_writing(&[&self.path])?;
        files::replace(&lock, &self.path, text_of(instance, &environment()), 0o644)?;
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", &self.name])?;
        systemctl(&["restart", &self.name])
    }

    /// Stops the unit, and removes it.
    ///
    /// # Errors
    /// If systemd refuses.
    pub(super) fn stop(&self) -> Result<(), UnitError> {
        systemctl(&["disable", "--now", &self.name])?;
        let _ = std::fs::remove_file(&self.path);
        systemctl(&["daemon-reload"])
    }
}

fn systemctl(arguments: &[&str]) -> Result<(), UnitError> {
    #[expect(clippy::disallowed_methods, reason = "the user's service manager")]
    let mut command = Command::new("systemctl");
    let done = command.arg("--user").arg("--no-ask-password").args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(UnitError::NoProgram)?;
    if done.status.success() {
        return Ok(());
    }
    let said = text::excerpt(String::from_utf8_lossy(&done.stderr).trim(), 500).to_string();
    Err(UnitError::Failed { arguments: arguments.join(" "), said })
}

/// The variables that name belljar's directories. The user's systemd does not know those of a shell.
fn environment() -> Vec<(&'static str, PathBuf)> {
    let names = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    names.into_iter().filter_map(|name| Some((name, location::variable(name)?))).collect()
}

/// The text of the unit (systemd.service(5)).
fn text_of(instance: &Instance, environment: &[(&str, PathBuf)]) -> String {
    let line = |(name, path): &(&str, PathBuf)| {
        let word = quoted(&format!("{name}={}", path.to_string_lossy())).replace("$$", "$");
        format!("Environment={word}\n")
    };
    let environment: String = environment.iter().map(line).collect();
    let program = quoted(&instance.program.to_string_lossy());
    let config = instance.config.to_string_lossy().replace('%', "%%").replace(['\n', '\r'], " ");
    format!(
        "# Written by `belljar up`, removed by `belljar down`.\n\
         [Unit]\n\
         Description=belljar for {config}\n\n\
         [Service]\n\
         Type=exec\n\
         {environment}ExecStart={program} up --foreground --place {}\n\
         Restart=on-failure\n\
         RestartSec=100ms\n\n\
         [Install]\n\
         WantedBy=default.target\n",
        instance.place
    )
}

/// A word of a command line (systemd.service(5), "Command lines").
fn quoted(word: &str) -> String {
    let mut out = String::from("\"");
    for character in word.chars() {
        match character {
            '%' => out.push_str("%%"),
            '$' => out.push_str("$$"),
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_starts_this_program_with_every_path() {
        let instance = |program: &str, config: &str| Instance {
            program: program.into(),
            place: "0123abcd".to_owned(),
            config: config.into(),
            is_unit: true,
        };
        let environment = [("XDG_STATE_HOME", PathBuf::from("/home/you/$1 %h"))];
        let text = text_of(&instance("/opt/bell jar/50%/a$b\"c", "/srv/100%\nExecStart=/bin/false"), &environment);
        assert!(text.contains("\nEnvironment=\"XDG_STATE_HOME=/home/you/$1 %%h\"\n"), "{text}");
        assert!(
            text.contains("\nExecStart=\"/opt/bell jar/50%%/a$$b\\\"c\" up --foreground --place 0123abcd\n"),
            "{text}"
        );
        assert!(text.contains("\nDescription=belljar for /srv/100%% ExecStart=/bin/false\n"), "{text}");
        assert_eq!(text.matches("\nExecStart=").count(), 1, "{text}");
    }
}
