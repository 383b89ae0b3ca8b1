//! Packs the SDKs for authors of providers. The crate `belljar-dist` owns the formats of the packages.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use belljar_dist::SdkRequest;

use crate::dist;
use crate::shell::Shell;

const USAGE: &str = "cargo xtask sdk [--output DIR] [--repository URL]";

/// Writes the packages of the SDKs into `target/sdk`, or into another directory.
pub(crate) fn run(shell: &Shell, mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut request = SdkRequest { root: shell.root.clone(), output: shell.target.join("sdk"), repository: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value: {USAGE}"));
        match argument.as_str() {
            "--output" => request.output = PathBuf::from(value()?),
            "--repository" => request.repository = Some(value()?),
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
    }
    dist::report(&request.output, &belljar_dist::pack_sdks(&request)?);
    Ok(())
}
