//! What the repository says about belljar: its version, description and licence.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The time of all files, unless `SOURCE_DATE_EPOCH` is set: 2000-01-01, in seconds since 1970. Any fixed time would do.
const TIME: u64 = 946_684_800;

/// Who wrote belljar.
pub(crate) const AUTHORS: &str = "The belljar contributors";

/// The facts that packages contain.
pub(crate) struct Project {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// The version, such as `0.1.0`.
    pub(crate) version: String,
    /// One sentence without a full stop.
    pub(crate) description: String,
    /// The licence as an SPDX expression.
    pub(crate) license: String,
    /// The text of the licence.
    pub(crate) license_text: String,
    /// The text of `README.md`.
    pub(crate) readme: String,
    /// The time of all files, in seconds since 1970: `SOURCE_DATE_EPOCH`, or a fixed one.
    pub(crate) time: u64,
    /// The namespace in the MCP registry, if it is known.
    pub(crate) namespace: Option<String>,
    /// The address of the source, if it is known.
    pub(crate) repository: Option<String>,
}

impl Project {
    /// Reads the facts of the repository at `root`.
    pub(crate) fn read(root: &Path, namespace: Option<String>, repository: Option<String>) -> Result<Project> {
        let metadata: Value = serde_json::from_str(&cargo(root, &["metadata", "--format-version", "1", "--no-deps"])?)?;
        let packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
        let package = packages.into_iter().find(|package| field(package, "name") == "belljar");
        let package = package.with_context(|| format!("\"{}\" has no package \"belljar\"", root.display()))?;
        let version = field(package, "version").to_owned();
        // Debian and PyPI write pre-releases in ways of their own.
        if version.contains(['-', '+']) {
            bail!("the version \"{version}\" is no release: packages are made for versions such as \"1.2.3\"");
        }
        let text = |name: &str| {
            let path = root.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read \"{}\"", path.display()))
        };
        Ok(Project {
            root: root.to_path_buf(),
            version,
            description: field(package, "description").to_owned(),
            license: field(package, "license").to_owned(),
            license_text: text("LICENSE")?,
            readme: text("README.md")?,
            time: time(env::var("SOURCE_DATE_EPOCH").ok())?,
            namespace,
            repository,
        })
    }

    /// The name in the MCP registry, if the namespace is known.
    pub(crate) fn registry_name(&self) -> Option<String> {
        self.namespace.as_ref().map(|namespace| format!("{namespace}/belljar"))
    }

    /// The time of all files, as RFC 3339 writes it.
    pub(crate) fn timestamp(&self) -> String {
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(self.time)).to_string()
    }
}

/// A text in the output of cargo. Empty if it is absent.
pub(crate) fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Runs cargo in the repository, and returns its output.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let shown = format!("`cargo {}`", arguments.join(" "));
    let mut command = Command::new(program);
    let done = command.current_dir(root).args(arguments).output().with_context(|| format!("cannot start {shown}"))?;
    if !done.status.success() {
        bail!("{shown} failed ({}):\n{}", done.status, String::from_utf8_lossy(&done.stderr));
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// The time of all files. `epoch` is the value of `SOURCE_DATE_EPOCH`.
fn time(epoch: Option<String>) -> Result<u64> {
    /// The end of the year 2106. The headers of some formats have 32 bits for it.
    const LATEST: u64 = u32::MAX as u64;
    let Some(epoch) = epoch else { return Ok(TIME) };
    match epoch.parse() {
        Ok(time) if time <= LATEST => Ok(time),
        _ => bail!("SOURCE_DATE_EPOCH is \"{epoch}\", and must be a number of seconds since 1970, at most {LATEST}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_fixed_or_given() {
        assert_eq!(time(None).unwrap(), TIME);
        assert_eq!(time(Some("7".into())).unwrap(), 7);
        for wrong in ["", "-1", "yesterday", "99999999999"] {
            assert!(time(Some(wrong.into())).unwrap_err().to_string().contains("SOURCE_DATE_EPOCH"), "{wrong}");
        }
    }
}
