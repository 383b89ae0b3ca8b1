//! Packs the SDKs for authors of providers. The crate `belljar-dist` owns the formats of the packages.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use belljar_dist::SdkRequest;

use crate::dist;
use crate::shell::Shell;

const USAGE: &str = "cargo xtask sdk [--output DIR] [--repository URL]";

/// Writes the packages of the SDKs into `target/sdk`, or into another directory.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let request = parse(&shell.root, &shell.target, arguments)?;
    dist::report(&request.output, &belljar_dist::pack_sdks(&request)?);
    Ok(())
}

fn parse(root: &Path, target: &Path, mut arguments: impl Iterator<Item = String>) -> Result<SdkRequest> {
    let mut request = SdkRequest { root: root.to_path_buf(), output: target.join("sdk"), repository: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value: {USAGE}"));
        match argument.as_str() {
            "--output" => request.output = value()?.into(),
            "--repository" => request.repository = Some(value()?),
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<SdkRequest> {
        parse(Path::new("root"), Path::new("target"), arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn options_are_parsed() {
        let request = parsed(&["--output", "out", "--repository", "https://example.com/belljar"]).unwrap();
        assert_eq!((request.root.as_path(), request.output.as_path()), (Path::new("root"), Path::new("out")));
        assert_eq!(request.repository.as_deref(), Some("https://example.com/belljar"));
        assert_eq!(parsed(&[]).unwrap().output, Path::new("target/sdk"));
    }

    #[test]
    fn wrong_options_are_named() {
        for (arguments, expected) in
            [(["--output"].as_slice(), "--output needs a value"), (&["--target"], "no argument \"--target\"")]
        {
            let error = parsed(arguments).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
