//! `belljar import`: sets belljar up from a bundle that `belljar export` wrote. Shows what each mount will be able to do, and
//! asks. Runs no code of a component.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::fetched::{FetchOptions, RevokedChoice};
use super::flags::WriteFlags;
use super::{confirm, fetched, output};
use crate::config::lock::{Lock, Pin};
use crate::config::{Config, ConfigInput};
use crate::grants::secrets::SecretSource;
use crate::model::error::show_bytes;
use crate::model::{Digest, MountName, command, text};
use crate::sandbox::{Profile, read_capped};
use crate::server::bundle::{self, Bundle};
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::location::LocationArgs;
use crate::server::{files, location, log};

/// The help of `import`.
pub(super) const HELP: &str = "Examples:
  belljar import team.bundle --config ~/belljar/belljar.toml
  belljar import oci://ghcr.io/acme/team:1 --signed-by acme.pub --config ~/belljar/belljar.toml

It writes belljar.toml, belljar.lock, policy.cedar, and the components into the directory \"plugins\"
beside them. There must be no configuration yet. Who signed a component is what the bundle says: it is
as true as the person is who gave you the bundle. belljar upgrade checks the next version itself.";

/// The options of `import`.
#[derive(Args)]
pub(super) struct ImportArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The file to read, or oci://REGISTRY/REPOSITORY:TAG.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// The public key in PEM of who signed the bundle in the registry.
    #[arg(long, value_name = "FILE")]
    signed_by: Option<PathBuf>,
    /// Take a bundle of a registry that nobody signed, or whose signature does not count.
    #[arg(long, conflicts_with = "signed_by")]
    unsigned: bool,
    #[command(flatten)]
    write: WriteFlags,
}

/// A bundle that was read and checked.
struct Import {
    bundle: Bundle,
    config: Config,
    lock: Lock,
}

/// Reads, shows, asks and writes.
pub(super) fn run(args: &ImportArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let write = args.write;
    let (path, input) = location::read_config_input(&args.at)?;
    if input.file.is_some() {
        return Err(Failure::Failed(format!(
            "there is a configuration \"{}\" already; name another place: {}",
            path.display(),
            command::line(["import", &args.source.to_string_lossy(), "--config", "DIR/belljar.toml"])
        )));
    }
    let shown = text::excerpt(&args.source.display().to_string(), 200);
    let bytes = match args.source.to_str().filter(|source| source.starts_with("oci://")) {
        Some(reference) => args.fetch(&Config::read(input.clone())?, reference)?,
        None => args.read_file(&shown)?,
    };
    let import = Import::parse(&shown, &bytes, &path, input)?;
    output::message(write.json, &import.describe()?)?;
    if !confirm::ask("Set belljar up like this?", write.yes)? {
        return Ok(ExitCode::FAILURE);
    }
    import.write(&path)?;
    output::message(write.json, &format!("Wrote \"{}\". To check it: {}\n", path.display(), command::line(["check"])))?;
    if write.json {
        let mounts: Vec<&str> = import.config.mounts.keys().map(MountName::as_str).collect();
        let files: Vec<&str> = import.bundle.components().map(|(file, _)| file).collect();
        output::print_json(&json!({ "configuration": path, "mounts": mounts, "components": files }))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl ImportArgs {
    fn read_file(&self, shown: &str) -> Result<Vec<u8>, Failure> {
        if self.signed_by.is_some() || self.unsigned {
            return Err(Failure::Misused(format!(
                "\"{shown}\" is a file, which has no signature; leave out --signed-by and --unsigned"
            )));
        }
        let unread = |error: std::io::Error| Failure::Failed(format!("cannot read \"{shown}\": {error}"));
        #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
        let file = std::fs::File::open(&self.source).map_err(unread)?;
        file.metadata().and_then(|meta| read_capped(file, meta.len(), bundle::MAX_BYTES)).map_err(unread)
    }

    /// Fetches the bundle, if its signature counts.
    fn fetch(&self, config: &Config, reference: &str) -> Result<Vec<u8>, Failure> {
        let mut fetcher = Fetcher::new(config)?.for_bundles();
        if let Some(path) = &self.signed_by {
            let shown = text::excerpt(&path.display().to_string(), 200);
            let pem = files::read_protected(path)?;
            let pem =
                pem.ok_or_else(|| Failure::Failed(format!("there is no file \"{shown}\"; name the public key")))?;
            let host = reference.trim_start_matches("oci://").split('/').next().unwrap_or_default();
            fetcher = fetcher.trusting(&host.to_ascii_lowercase(), pem);
        }
        let WriteFlags { yes, json } = self.write;
        let options = FetchOptions { unsigned: self.unsigned, revoked: RevokedChoice::Refuse, unasked: yes, json };
        Ok(options.fetch_with(&fetcher, reference)?.bytes)
    }
}

impl Import {
    fn parse(shown: &str, bytes: &[u8], path: &Path, input: ConfigInput) -> Result<Self, Failure> {
        let refuse = |why: bundle::BundleError| Failure::Failed(format!("\"{shown}\" cannot be imported: {why}"));
        let bundle = Bundle::parse(bytes).map_err(refuse)?;
        let config =
            Config::read(ConfigInput { file: Some((path.to_owned(), bundle.configuration.clone())), ..input })?;
        let lock = bundle.checked_lock(|mount| config.component_file(mount)).map_err(refuse)?;
        for (file, bytes) in bundle.components() {
            let checked = Profile::read(bytes).map_err(|why| why.to_string());
            let checked = checked.and_then(|profile| profile.check().map_err(|why| why.to_string()));
            checked.map_err(|why| Failure::Failed(format!("\"{shown}\" cannot be imported: \"{file}\" is {why}")))?;
        }
        Ok(Self { bundle, config, lock })
    }

    /// What will be set up: the components, what each mount will be able to do, and what is missing on this machine.
    fn describe(&self) -> Result<String, Failure> {
        let mut out = String::new();
        for (file, bytes) in self.bundle.components() {
            let stem = file.trim_end_matches(".wasm");
            let users = self.config.mounts.iter().filter(|(_, own)| own.component.as_deref() == Some(file));
            let mut names: Vec<MountName> = users.map(|(name, _)| name.clone()).collect();
            if names.is_empty() {
                names.extend(MountName::new(stem));
            }
            for name in names {
                let _ = writeln!(out, "{name}  {}\n  {}", show_bytes(bytes.len() as u64), Digest::of(bytes));
                if let Some(source) = self.lock.pin(&name).and_then(|pin: &Pin| pin.source.as_ref()) {
                    let signed = text::line(&fetched::signed_by(source));
                    let _ = writeln!(out, "  from {}, says the bundle; {signed}", text::line(&source.reference));
                    if let Some(revoked) = &source.revoked {
                        let _ = writeln!(out, "  {}", text::line(&revoked.to_string()));
                    }
                }
                let able = self.config.mounts.get(&name).map(|own| own.grants.explain()).unwrap_or_default();
                if able.is_empty() {
                    out += "  It will be able to compute, and nothing else.\n";
                }
                for word in able {
                    let _ = writeln!(out, "  - {}", text::line(&word));
                }
            }
        }
        for (name, source) in &self.config.secrets {
            match source {
                SecretSource::File(path) => {
                    let _ = writeln!(out, "It needs the secret \"{name}\" in the file \"{}\".", path.display());
                }
                SecretSource::Env(variable) => {
                    let _ = writeln!(out, "It needs the secret \"{name}\" in the variable \"{variable}\".");
                }
            }
        }
        Ok(out)
    }

    /// Writes the components first and the configuration last: without it, belljar serves nothing of a half import.
    fn write(&self, path: &Path) -> Result<(), Failure> {
        let plugins: PathBuf = self.config.plugins.clone();
        let folder = path.parent().unwrap_or(path);
        #[expect(clippy::disallowed_methods, reason = "the directories that the operator named")]
        std::fs::create_dir_all(folder).and_then(|()| std::fs::create_dir_all(&plugins))?;
        for (file, bytes) in self.bundle.components() {
            let file = plugins.join(file);
            #[expect(clippy::disallowed_methods, reason = "the operator's plugin directory")]
            let is_other = std::fs::read(&file).is_ok_and(|present| present != bytes);
            if is_other {
                return Err(Failure::Failed(format!(
                    "there is another component \"{}\" already; remove it, or import into another place",
                    file.display()
                )));
            }
        }
        let write_lock = files::lock_for_writing(&[path, &plugins.join("x"), &self.config.policy_file])?;
        for (file, bytes) in self.bundle.components() {
            files::replace(&write_lock, &plugins.join(file), bytes, 0o644)?;
        }
        if let Some(lock) = &self.bundle.lock {
            files::replace(&write_lock, &self.config.lock, lock, 0o600)?;
        }
        if let Some(policy) = &self.bundle.policy {
            files::replace(&write_lock, &self.config.policy_file, policy, 0o600)?;
        }
        Ok(files::replace(&write_lock, path, &self.bundle.configuration, 0o600)?)
    }
}
