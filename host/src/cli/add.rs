//! `belljar add`: puts a component into the plugin directory as a mount, with its grants. The component is a file, or is
//! fetched.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::fetched::{self, FetchOptions, FetchedSource, RevokedChoice};
use super::flags::{GrantFlags, WriteFlags};
use super::{confirm, grant, inspect, output, releases, revoked};
use crate::config::Config;
use crate::config::lock::{LockedSource, Pin};
use crate::grants::edit::GrantArgs;
use crate::grants::{GrantKind, KINDS, Need};
use crate::model::error::show_bytes;
use crate::model::{Digest, MountName, command, nearest, text};
use crate::sandbox::Profile;
use crate::server::candidate::Candidate;
use crate::server::edit::ConfigChange;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, edit, files, log, pins, shipped};

/// The help of `add`.
pub(super) const HELP: &str = "Examples:
  belljar add files --as notes --fs ~/notes
  belljar add ./weather.wasm --http https://api.example --method GET
  belljar add ~/downloads/providers
  belljar add ghcr.io/acme/tides:1.2 --http https://api.tides.example --method GET
  belljar add 'https://acme.example/tides.wasm#sha256=HEX' --unsigned

SOURCE is a .wasm file, a directory of such files, or the name of a provider that was installed
with belljar. Without SOURCE, the command lists the installed providers.
A reference of a registry, or a URL with its digest, is fetched: belljar shows what it is and who
signed it, checks the signature, and downloads it. docs/guide/registries.md explains [trust].

The component is copied into the plugin directory. Without grants it can only compute.";

/// The options of `add`.
#[derive(Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// What to add.
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// The name of the mount (default: the name of the file).
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Fetch a component that nobody signed, or whose signature does not count.
    #[arg(long)]
    unsigned: bool,
    /// Take a version that its publisher revoked. SOURCE must name the version or a digest.
    #[arg(long)]
    revoked: bool,
    #[command(flatten)]
    grants: GrantFlags,
    #[command(flatten)]
    write: WriteFlags,
}

/// A component that is to become a mount.
pub(super) struct NewMount {
    mount: MountName,
    bytes: Vec<u8>,
    digest: Digest,
    profile: Profile,
    /// Where it was fetched from.
    source: Option<LockedSource>,
}

/// Adds one component, or each of a directory.
pub(super) fn run(args: &AddArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let Some(source) = &args.source else { return list(args.write.json) };
    let config = configuration::file(&args.at)?;
    let all = match fetched::is_reference(source) {
        true => {
            let WriteFlags { yes, json } = args.write;
            args.check_names_version(source)?;
            let revoked = RevokedChoice::of(args.revoked, &config);
            let options = FetchOptions { unsigned: args.unsigned, unasked: yes, json, revoked };
            vec![NewMount::fetched(options.fetch(&config, source)?, args.name.as_deref())?]
        }
        false => args.read_files(source)?,
    };
    let grants: Vec<(&'static GrantKind, GrantArgs)> = match all.as_slice() {
        [one] => args.grants.0.iter().map(|(kind, arguments)| (*kind, one.completed(kind, arguments))).collect(),
        _ => Vec::new(),
    };
    for one in &all {
        one.check_is_new(&config)?;
    }
    loop {
        let mut change = ConfigChange::draft::<Failure>(&args.at, |document, here| {
            let [one] = all.as_slice() else { return Ok(()) };
            if grants.is_empty() {
                return Ok(());
            }
            edit::mount(document, &one.mount, |table| {
                let mut grants = grants.iter();
                grants.try_for_each(|(kind, arguments)| (kind.grant)(table, arguments, here)).map_err(Failure::misused)
            })
        })?;
        configuration::read_ambient(&mut change.new, &[])?;
        for one in &all {
            output::message(args.write.json, &one.describe(&change, &grants)?)?;
        }
        if !grants.is_empty() {
            output::message(args.write.json, &change.diff())?;
        }
        if !confirm::ask("Add this?", args.write.yes)? {
            return Ok(ExitCode::FAILURE);
        }
        for one in &all {
            one.remember(&change.new)?;
            one.install(&change.new.plugins)?;
        }
        if let ([one], false) = (all.as_slice(), grants.is_empty()) {
            let candidate = Candidate::find(&change.new, &one.mount)?;
            if candidate.digest != one.digest {
                return Err(Failure::Failed(format!(
                    "another process replaced the component of \"{}\"; nothing was granted",
                    one.mount
                )));
            }
            if !grant::write(&change, &candidate)? {
                output::message(args.write.json, grant::AGAIN)?;
                continue;
            }
            output::message(args.write.json, &change.effect(Some(&one.mount)))?;
        }
        return report(&all, &change, args.write.json);
    }
}

impl AddArgs {
    /// A revoked version is taken only if the operator names it: a tag that moves may lead to one at any time.
    fn check_names_version(&self, source: &str) -> Result<(), Failure> {
        let tag = releases::split(source).and_then(|(_, tag)| tag).and_then(releases::version_of);
        match self.revoked && tag.is_none() && !source.contains(['@', '#']) {
            true => Err(Failure::Misused(format!(
                "--revoked is for a version that you name, and \"{}\" names none; write its tag with three numbers, or its digest",
                text::excerpt(source, 200)
            ))),
            false => Ok(()),
        }
    }

    /// The components in the files that `source` names.
    fn read_files(&self, source: &str) -> Result<Vec<NewMount>, Failure> {
        for (flag, name) in [(self.unsigned, "--unsigned"), (self.revoked, "--revoked")] {
            if flag {
                let shown = text::excerpt(source, 200);
                return Err(Failure::Misused(format!(
                    "\"{shown}\" is a file, which needs no signature and no list; leave out {name}"
                )));
            }
        }
        let files = sources(source)?;
        if files.len() > 1 && (self.name.is_some() || !self.grants.0.is_empty()) {
            return Err(Failure::Misused(format!(
                "\"{}\" has {} components, and a name or a grant is for one; name one of the files",
                text::excerpt(source, 200),
                files.len()
            )));
        }
        files.iter().map(|file| NewMount::read(file, self.name.as_deref())).collect()
    }
}

/// Lists the installed providers.
fn list(is_json: bool) -> Result<ExitCode, Failure> {
    let names = shipped::names();
    if is_json {
        output::print_json(&json!({ "providers": names, "directory": shipped::directory() }))?;
    } else if names.is_empty() {
        output::print("No providers were installed with belljar. Name a file: belljar add ./FILE.wasm\n")?;
    } else {
        output::print(&format!("{}\n\nTo add one: belljar add NAME\n", names.join("\n")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that `source` names.
fn sources(source: &str) -> Result<Vec<PathBuf>, Failure> {
    let path = Path::new(source);
    if path.is_dir() {
        #[expect(clippy::disallowed_methods, reason = "the directory that the operator named")]
        let entries = std::fs::read_dir(path)?.flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> = entries.filter(|file| file.extension().is_some_and(|it| it == "wasm")).collect();
        all.sort();
        return match all.is_empty() {
            true => Err(Failure::Failed(format!("\"{}\" has no .wasm file", text::excerpt(source, 200)))),
            false => Ok(all),
        };
    }
    let is_path = source.contains('/') || path.extension().is_some_and(|it| it == "wasm");
    if is_path || path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(file) = shipped::find(source) {
        return Ok(vec![file]);
    }
    let names = shipped::names();
    let source = text::excerpt(source, 200);
    Err(Failure::Failed(match nearest(&source, names.iter().map(String::as_str)) {
        _ if names.is_empty() => format!("there is no file \"{source}\", and no providers were installed with belljar"),
        Some(known) => format!("no provider \"{source}\" was installed with belljar; did you mean \"{known}\"?"),
        None => format!("no provider \"{source}\" was installed with belljar; these were: {}", names.join(", ")),
    }))
}

impl NewMount {
    /// Reads and checks a component. Runs no code of it.
    pub(super) fn read(file: &Path, name: Option<&str>) -> Result<Self, Failure> {
        let (shown, bytes) = inspect::read(file)?;
        Self::checked(&shown, &file.file_stem().unwrap_or_default().to_string_lossy(), name, bytes)
    }

    /// The same for a component that was fetched.
    fn fetched(fetched: FetchedSource, name: Option<&str>) -> Result<Self, Failure> {
        let FetchedSource { bytes, source } = fetched;
        let new = Self::checked(&source.reference, fetched::default_name(&source.reference), name, bytes)?;
        Ok(Self { source: Some(source), ..new })
    }

    fn checked(shown: &str, stem: &str, name: Option<&str>, bytes: Vec<u8>) -> Result<Self, Failure> {
        let mount = match name {
            Some(name) => MountName::new(name).map_err(Failure::misused)?,
            None => MountName::from_stem(stem)
                .map_err(|why| Failure::Failed(format!("\"{shown}\": {why}; name the mount with --as NAME")))?,
        };
        let refuse = |why: String| Failure::Failed(format!("\"{shown}\" cannot be added: it is {why}"));
        let profile = Profile::read(&bytes).map_err(|why| refuse(why.to_string()))?;
        profile.check().map_err(|why| refuse(why.to_string()))?;
        Ok(Self { mount, digest: Digest::of(&bytes), bytes, profile, source: None })
    }

    /// The grant with the name that the provider declares, if the command line leaves it out: `--fs ~/notes` becomes
    /// `--fs /data=~/notes`.
    fn completed(&self, kind: &GrantKind, arguments: &GrantArgs) -> GrantArgs {
        let mut completed = arguments.clone();
        if let [need] = self.needs(kind.name).as_slice()
            && kind.flag.value.contains('=')
            && !arguments.value.contains('=')
            && let Some(name) = &need.name
        {
            completed.value = format!("{name}={}", arguments.value);
        }
        completed
    }

    /// The declared needs of this kind of grant that are not optional.
    pub(super) fn needs(&self, kind: &str) -> Vec<&Need> {
        self.profile.needs.all().iter().filter(|need| need.kind == kind && !need.optional).collect()
    }

    /// Checks that the mount does not exist with other bytes.
    fn check_is_new(&self, config: &Config) -> Result<(), Failure> {
        let mount = &self.mount;
        let component = config.mounts.get(mount).and_then(|own| own.component.clone());
        if let Some(component) = component {
            return Err(Failure::Failed(format!(
                "the configuration has a mount \"{mount}\" already, with the component \"{component}\"; choose another name with --as NAME"
            )));
        }
        let present = self.file(&config.plugins);
        #[expect(clippy::disallowed_methods, reason = "the operator's plugin directory")]
        let is_other = std::fs::read(&present).is_ok_and(|bytes| bytes != self.bytes);
        match is_other {
            true if self.source.is_some() => Err(Failure::Failed(format!(
                "there is another component \"{mount}\" already; choose another name with --as NAME, or upgrade it: {}",
                command::line(["upgrade", mount.as_str()])
            ))),
            true => Err(Failure::Failed(format!(
                "there is another component \"{mount}\" already; choose another name with --as NAME, or remove it first: {}",
                command::line(["remove", mount.as_str()])
            ))),
            false => Ok(()),
        }
    }

    fn file(&self, plugins: &Path) -> PathBuf {
        plugins.join(format!("{}.wasm", self.mount))
    }

    /// What it is, and what it will be able to do.
    fn describe(&self, change: &ConfigChange, grants: &[(&'static GrantKind, GrantArgs)]) -> Result<String, Failure> {
        let Self { mount, bytes, digest, profile, .. } = self;
        let mut out = format!("{mount}  belljar://{mount}/  {}\n  {digest}\n", show_bytes(bytes.len() as u64));
        let consequences = change.consequences(mount);
        match consequences.is_empty() && grants.is_empty() {
            true => out += "  It will be able to compute, and nothing else.\n",
            false => out += &consequences,
        }
        for need in self.missing(&change.new) {
            let _ = writeln!(out, "  It needs {}", need.describe());
        }
        if let Some(why) = &profile.bad_needs {
            let _ = writeln!(out, "  What it needs cannot be read: {why}");
        }
        Ok(out + &grant::warnings(change, (mount, profile), grants)?)
    }

    /// The declared needs for which the mount will hold no grant of the kind.
    fn missing(&self, config: &Config) -> impl Iterator<Item = &Need> {
        let held = config.mounts.get(&self.mount).map(|own| own.grants.describe()).unwrap_or_default();
        let is_held = move |need: &&Need| held.iter().any(|(kind, _)| *kind == need.kind);
        self.profile.needs.all().iter().filter(|need| !need.optional).filter(move |need| !is_held(need))
    }

    /// Writes into the lock where the component was fetched from. It comes before the component: a mount that is there without
    /// its pin would be served as any file.
    fn remember(&self, config: &Config) -> Result<(), Failure> {
        let Some(source) = &self.source else { return Ok(()) };
        let write_lock = files::lock_for_writing(&[&config.lock])?;
        let mut lock = pins::read(&config.lock)?;
        let Profile { exports, imports, .. } = self.profile.clone();
        let pin = Pin { digest: self.digest, next: None, source: Some(source.clone()), exports, imports };
        lock.set(self.mount.clone(), pin);
        Ok(pins::write(&write_lock, config, &lock)?)
    }

    /// Writes the component into the plugin directory. Creates the directory if it is missing.
    pub(super) fn install(&self, plugins: &Path) -> Result<(), Failure> {
        #[expect(clippy::disallowed_methods, reason = "the operator's plugin directory")]
        std::fs::create_dir_all(plugins)?;
        let file = self.file(plugins);
        let lock = files::lock_for_writing(&[&file])?;
        Ok(files::replace(&lock, &file, &self.bytes, 0o644)?)
    }
}

/// Says what was added, and what to type next.
fn report(all: &[NewMount], change: &ConfigChange, is_json: bool) -> Result<ExitCode, Failure> {
    if is_json {
        let one = |one: &NewMount| {
            json!({
                "mount": one.mount.as_str(), "digest": one.digest.to_string(), "granted": change.granted(&one.mount),
                "source": one.source.as_ref().map(|source| &source.reference),
                "signedBy": one.source.as_ref().map(fetched::signed_by),
                "revoked": one.source.as_ref().and_then(|source| source.revoked.as_ref()).map(revoked::to_json),
                "needs": one.missing(&change.new).map(Need::describe).collect::<Vec<_>>(),
            })
        };
        output::print_json(&json!({ "added": all.iter().map(one).collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    for one in all {
        let mount = &one.mount;
        let _ = writeln!(
            out,
            "Added \"{mount}\". To see what it has: {}",
            command::line(["list", "--mount", mount.as_str()])
        );
        for need in one.missing(&change.new) {
            let kind = KINDS.iter().find(|kind| kind.name == need.kind);
            if let Some(run) = kind.and_then(|kind| kind.command(mount.as_str(), Some(need))) {
                let _ = writeln!(out, "It needs {}. To grant it: {run}", need.kind);
            }
        }
    }
    output::print(&out)?;
    Ok(ExitCode::SUCCESS)
}
