//! `belljar export`: writes the configuration, its lock and its components into one file, for another machine. The file may lie in
//! a registry.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::publish::key_pair::SignFlags;
use super::{confirm, output, publish};
use crate::catalog;
use crate::config::Config;
use crate::model::command;
use crate::model::error::show_bytes;
use crate::server::bundle::{self, Bundle};
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::location::LocationArgs;
use crate::server::publishing::artifact::ArtifactDocuments;
use crate::server::publishing::signing_key::SigningKey;
use crate::server::{directories, files, location, log};

/// The help of `export`.
pub(super) const HELP: &str = "Examples:
  belljar export team.bundle
  belljar import team.bundle --config ~/belljar/belljar.toml
  belljar export oci://ghcr.io/acme/team:1 --sign-key acme.key
  belljar import oci://ghcr.io/acme/team:1 --signed-by acme.pub --config ~/belljar/belljar.toml

The bundle has the configuration, belljar.lock, policy.cedar and the components. It has no secret and no
key: the configuration only says where they are. Names of directories and of people are in it.";

/// The options of `export`.
#[derive(Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The file to write, or oci://REGISTRY/REPOSITORY:TAG to push it to a registry.
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    #[command(flatten)]
    sign: SignFlags,
    /// Take the tag from other content.
    #[arg(long)]
    force: bool,
    /// Push without asking for confirmation.
    #[arg(long)]
    yes: bool,
}

/// Writes or pushes the bundle.
pub(super) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let (path, input) = location::read_config_input(&args.at)?;
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
    let size = show_bytes(bytes.len() as u64);
    if bytes.len() as u64 > bundle::MAX_BYTES {
        let most = show_bytes(bundle::MAX_BYTES);
        return Err(Failure::Failed(format!("the bundle has {size}, at most {most} can be read; remove components")));
    }
    let target = &args.target;
    if let Some(reference) = target.to_str().filter(|target| target.starts_with("oci://")) {
        let what = format!("{count} components, {size}");
        return args.push(&config, reference, &bytes, &what);
    }
    if target.exists() {
        return Err(Failure::Failed(format!("\"{}\" exists already; name another file", target.display())));
    }
    if args.sign.is_named() {
        return Err(Failure::Misused(format!(
            "\"{}\" is a file, and files are not signed; name oci://REGISTRY/REPOSITORY:TAG, or leave out the key",
            target.display()
        )));
    }
    let write_lock = files::lock_for_writing(&[target])?;
    files::replace(&write_lock, target, &bytes, 0o600)?;
    output::print(&format!("Wrote \"{}\": {count} components, {size}.\n", target.display()))?;
    Ok(ExitCode::SUCCESS)
}

impl ExportArgs {
    /// Shows what will be in the registry, asks, and pushes it.
    fn push(&self, config: &Config, reference: &str, bytes: &[u8], what: &str) -> Result<ExitCode, Failure> {
        let (repository, tag) = publish::target(reference)?;
        let key = self.sign.read(config)?;
        let mut documents = ArtifactDocuments::bundle(bytes);
        let signed = key.as_ref().map_or_else(|| "nobody".to_owned(), SigningKey::name);
        output::print(&format!(
            "{reference}  {what}\n  manifest  {}\n  signed    by {signed}\n  Whoever can read that repository reads the configuration: \
             names of directories, servers and people.\n",
            documents.digest()
        ))?;
        if !confirm::ask("Push this?", self.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        let fetcher = Fetcher::new(config)?.for_bundles();
        publish::push(&fetcher, (&repository, &tag), &mut documents, key.as_ref(), self.force)?;
        let import = command::line(["import", reference, "--config", "DIR/belljar.toml"]);
        output::print(&format!("Pushed \"{reference}\".\nTo use it: {import}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
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
