//! Publishes the providers to a registry of containers, each under its name and the version of the repository. The built program
//! does it, with `belljar publish`: what users fetch is what authors publish.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::project::Project;

/// What to publish, and where.
#[derive(Clone, Debug)]
pub struct PublishRequest {
    /// The root of the repository.
    pub root: PathBuf,
    /// The built program. `belljar-fetch` lies beside it.
    pub program: PathBuf,
    /// The directory with the providers: each `.wasm` file in it is published.
    pub providers: PathBuf,
    /// The registry and the namespace, such as `ghcr.io/acme`.
    pub namespace: String,
    /// The private key that signs. Without it, users need `--unsigned`.
    pub key: Option<PathBuf>,
    /// The address of the source. Without it, the artifacts name none.
    pub repository: Option<String>,
}

/// Publishes all providers. Returns their references, sorted.
///
/// # Errors
///
/// Fails before the first provider is published if the program or the providers are missing. If a provider cannot be published,
/// those before it stay published: a second run publishes the same bytes.
pub fn publish(request: &PublishRequest) -> Result<Vec<String>> {
    let PublishRequest { root, program, providers, namespace, key, repository } = request;
    let project = Project::read(root, None, repository.clone())?;
    if !namespace.contains('/') || namespace.ends_with('/') || namespace.contains("://") {
        bail!(
            "\"{namespace}\" is not where providers can be published; expected REGISTRY/NAMESPACE, such as ghcr.io/acme"
        );
    }
    if !program.is_file() {
        bail!("there is no program \"{}\": build it with `cargo xtask build`", program.display());
    }
    let components = components(providers)?;
    // Nobody's configuration is read.
    let place = tempfile::tempdir()?;
    let configuration = place.path().join("belljar.toml");
    fs::write(&configuration, "")?;
    let mut references = Vec::new();
    for (name, component) in &components {
        let reference = format!("{namespace}/{name}:{}", project.version);
        let mut command = Command::new(program);
        command.arg("publish").arg(component).args([&reference, "--yes", "--licence", &project.license]);
        command.arg("--config").arg(&configuration).current_dir(place.path());
        let readme = root.join("plugins").join(name).join("README.md");
        if readme.is_file() {
            command.arg("--readme").arg(readme);
        }
        if let Some(repository) = repository {
            command.args(["--source", repository]);
        }
        if let Some(key) = key {
            command.arg("--sign-key").arg(key);
        }
        let output = command.output().with_context(|| format!("cannot run \"{}\"", program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("\"{reference}\" was not published: {}", said.trim_end());
        }
        references.push(reference);
    }
    Ok(references)
}

/// The names and paths of the components in a directory, sorted.
fn components(directory: &Path) -> Result<Vec<(String, PathBuf)>> {
    let cure = "build the providers with `cargo xtask build`, or name another directory with --providers";
    let entries = fs::read_dir(directory)
        .with_context(|| format!("there is no directory \"{}\" with providers: {cure}", directory.display()))?;
    let mut all = Vec::new();
    for entry in entries {
        let path = std::path::absolute(entry?.path())?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        if let Some(name) = stem.filter(|_| path.extension().is_some_and(|kind| kind == "wasm")) {
            all.push((name, path));
        }
    }
    if all.is_empty() {
        bail!("\"{}\" has no .wasm file: {cure}", directory.display());
    }
    all.sort();
    Ok(all)
}
