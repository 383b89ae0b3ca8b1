//! `belljar upgrade`: puts a newer version in the place of a component that was fetched.
//!
//! A changed signer, or an import that the old version does not have, holds an upgrade back: the old version is served until
//! the operator accepts the change.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use belljar_fetch_protocol::{Required, Resolved, RevokedList};
use clap::Args;
use serde_json::{Value, json};

use super::fetched::{self, FetchOptions, FetchedSource, RevokedChoice};
use super::flags::WriteFlags;
use super::releases;
use super::{confirm, output, revoked};
use crate::config::Config;
use crate::config::lock::{LockedRevocation, LockedSource, Pin};
use crate::model::error::show_bytes;
use crate::model::{Digest, MountName, command, text};
use crate::sandbox::Profile;
use crate::server::candidate::Candidate;
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::fuel_comparison::CallCosts;
use crate::server::location::LocationArgs;
use crate::server::{files, location, log, pins, server_status, server_status::Changed};

/// The help of `upgrade`.
pub(super) const HELP: &str = "Examples:
  belljar upgrade tides
  belljar upgrade tides --dry-run
  belljar upgrade tides --to 1.1.0

Without --to, it takes the newest release: the highest tag with three numbers. A preview is taken only
if the present version is one.

If another signer signed the new version, or it has imports that the old one does not have, the old
version stays, and the command says what to type to accept the change.";

/// The options of `upgrade`.
#[derive(Args)]
pub(super) struct UpgradeArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The name of the mount.
    #[arg(value_name = "MOUNT")]
    mount: String,
    /// The tag or digest to take, also an older one. For a file: its URL with the digest.
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not run the two versions, without grants, to compare what their calls cost.
    #[arg(long)]
    no_run: bool,
    /// Accept another signer, and new imports.
    #[arg(long)]
    accept: bool,
    /// Take a version that nobody signed, or whose signature does not count.
    #[arg(long)]
    unsigned: bool,
    /// Take a version that its publisher revoked.
    #[arg(long, requires = "to")]
    revoked: bool,
    #[command(flatten)]
    write: WriteFlags,
}

/// What is served now.
struct Present {
    mount: MountName,
    pin: Pin,
    source: LockedSource,
    /// The name of the file in the plugin directory.
    file: String,
}

/// A version that was downloaded and compared with the present one.
struct NewVersion {
    bytes: Vec<u8>,
    source: LockedSource,
    candidate: Candidate,
    /// Why the operator must accept it.
    held: Vec<String>,
    /// What the calls of the conformance checks cost: those of the present version, and those of this one. `None`: they were
    /// not made.
    costs: Option<[Result<CallCosts, String>; 2]>,
}

/// Upgrades one mount.
pub(super) fn run(args: &UpgradeArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let (path, input) = location::read_config_input(&args.at)?;
    let config = Config::read(input)?;
    let present = Present::find(&config, &args.mount)?;
    let fetcher = Fetcher::new(&config)?;
    let (required, json) = (if args.unsigned { Required::Nothing } else { Required::Signature }, args.write.json);
    let list = args.revoked_list(&present, &fetcher)?;
    let present = present.learning(&config, &list, args.dry_run)?;
    let target = args.target(&present, &fetcher, &list)?;
    let resolved = fetcher.resolve(&target, required)?;
    if resolved.component_digest == present.pin.digest.to_string() && present.pin.next.is_none() {
        return args.keep(&present, &resolved);
    }
    if args.to.is_none() {
        present.check_is_newer(&resolved)?;
    }
    output::message(json, &fetched::describe(&resolved))?;
    let revoked = RevokedChoice::of(args.revoked, &config);
    let options = FetchOptions { unsigned: args.unsigned, unasked: args.write.yes && !args.accept, json, revoked };
    let mut new = present.compared(options.download(&fetcher, &resolved)?)?;
    if !args.no_run {
        new.measure(&config, &present, &fetcher);
    }
    output::message(json, &new.describe(&config, &present))?;
    if !new.held.is_empty() && !args.accept {
        let accept = command::line(["upgrade", present.mount.as_str(), "--to", &present.to(&new.source), "--accept"]);
        output::message(json, &format!("The old version stays. To accept this: {accept}\n"))?;
        report(args, &present, Some(&new), "held")?;
        return Ok(ExitCode::FAILURE);
    }
    if args.dry_run {
        return report(args, &present, Some(&new), "would-upgrade");
    }
    if !confirm::ask("Upgrade?", args.write.yes)? {
        return Ok(ExitCode::FAILURE);
    }
    let written = new.install(&config, &present)?;
    let changed = server_status::await_reload(&config.state, &path, Changed::Lock(&written), Some(&present.mount));
    output::message(json, &format!("Upgraded \"{}\" to {}. {changed}", present.mount, new.candidate.digest))?;
    report(args, &present, Some(&new), "upgraded")
}

impl UpgradeArgs {
    /// The list beside the present version. Its server may be gone for good, which is no obstacle for a version that is named.
    fn revoked_list(&self, present: &Present, fetcher: &Fetcher) -> Result<RevokedList, Failure> {
        match (fetcher.revoked(&revoked::fetchable(&present.source, &present.pin.digest)), &self.to) {
            (Ok(list), _) => Ok(list),
            (Err(error), None) => Err(error.into()),
            (Err(error), Some(_)) => {
                let words = format!("whether the present version is revoked is not known: {error}\n");
                output::message(self.write.json, &words)?;
                Ok(RevokedList::default())
            }
        }
    }

    /// Says that there is no other version to take. The exit code is 1 if the present one is revoked.
    fn keep(&self, present: &Present, resolved: &Resolved) -> Result<ExitCode, Failure> {
        let Some(revoked) = &present.source.revoked else {
            let current = format!("\"{}\" is up to date: {}\n", present.mount, resolved.reference);
            output::message(self.write.json, &current)?;
            return report(self, present, None, "current");
        };
        let words = format!(
            "\"{}\": {revoked}. There is no newer version that is not revoked; to take an older one: {}\n",
            present.mount,
            command::line(["upgrade", present.mount.as_str(), "--to", "VERSION"])
        );
        output::message(self.write.json, &words)?;
        report(self, present, None, "revoked")?;
        Ok(ExitCode::FAILURE)
    }

    /// The reference of the version to take.
    fn target(&self, present: &Present, fetcher: &Fetcher, list: &RevokedList) -> Result<String, Failure> {
        let reference = &present.source.reference;
        let Some((repository, _)) = releases::split(reference) else {
            return self.to.clone().ok_or_else(|| {
                let upgrade = command::line(["upgrade", present.mount.as_str(), "--to", "'https://...#sha256=HEX'"]);
                Failure::Misused(format!(
                    "\"{reference}\" is a file, of which no newer version is known; name one: {upgrade}"
                ))
            });
        };
        match &self.to {
            Some(to) if to.starts_with("sha256:") => Ok(format!("{repository}@{to}")),
            Some(to) if fetched::is_reference(to) => Ok(to.clone()),
            Some(to) => Ok(format!("{repository}:{to}")),
            None => {
                let tags = revoked::without_revoked(fetcher.tags(reference)?.tags, list)?;
                let newer = releases::newer(&tags, &present.source).map(|tag| format!("{repository}:{tag}"));
                // The same tag again: a registry may have moved it.
                Ok(newer.unwrap_or_else(|| reference.clone()))
            }
        }
    }
}

impl Present {
    /// Finds the mount in the lock.
    fn find(config: &Config, mount: &str) -> Result<Self, Failure> {
        let mount = MountName::new(mount).map_err(Failure::misused)?;
        let lock = pins::read(&config.lock)?;
        let pin = lock.pin(&mount).cloned();
        let Some((source, pin)) = pin.and_then(|pin| Some((pin.source.clone()?, pin))) else {
            return Err(Failure::Failed(format!(
                "the component of \"{mount}\" was not fetched, so no newer version is known; to replace it, copy the new file \
                 over it, and run: {}",
                command::line(["trust", mount.as_str()])
            )));
        };
        let file = config.component_file(&mount);
        Ok(Self { mount, pin, source, file })
    }

    /// The same with what the list of revoked versions says. The lock remembers it, unless nothing may change.
    fn learning(mut self, config: &Config, list: &RevokedList, dry_run: bool) -> Result<Self, Failure> {
        let learned: Option<LockedRevocation> = revoked::learned(list, &self.source, &self.pin.digest)?;
        if learned != self.source.revoked && !dry_run {
            revoked::remember(config, &[(self.mount.clone(), self.pin.digest, learned.clone())])?;
        }
        self.source.revoked = learned;
        self.pin.source = Some(self.source.clone());
        Ok(self)
    }

    /// A registry that answers with an older version would undo the mends of the present one.
    fn check_is_newer(&self, resolved: &Resolved) -> Result<(), Failure> {
        let old = releases::version(&self.source.reference, self.source.version.as_deref());
        match (old, releases::version(&resolved.reference, resolved.version.as_deref())) {
            (Some(old), Some(new)) if new < old => Err(Failure::Failed(format!(
                "\"{}\" says that it is version {new}, and \"{}\" is served in version {old}; to go back, name the version: {}",
                resolved.reference,
                self.mount,
                command::line(["upgrade", self.mount.as_str(), "--to", &new.to_string()])
            ))),
            _ => Ok(()),
        }
    }

    /// What to write after `--to` for this source.
    fn to(&self, source: &LockedSource) -> String {
        match (&source.manifest, releases::split(&source.reference)) {
            (Some(manifest), Some(_)) => manifest.to_string(),
            _ => source.reference.clone(),
        }
    }

    /// Compares a version with the present one.
    fn compared(&self, fetched: FetchedSource) -> Result<NewVersion, Failure> {
        let FetchedSource { bytes, source } = fetched;
        let refuse = |why: String| {
            Failure::Failed(format!("\"{}\" cannot replace \"{}\": it is {why}", source.reference, self.mount))
        };
        let profile = Profile::read(&bytes).map_err(|why| refuse(why.to_string()))?;
        profile.check().map_err(|why| refuse(why.to_string()))?;
        let name = (self.mount.clone(), self.file.clone());
        let candidate = Candidate::replacing(self.pin.clone(), name, Digest::of(&bytes), profile);
        let mut held = Vec::new();
        match (&self.source.signer, &source.signer) {
            (Some(old), Some(new)) if !old.is_same(new) => held.push(format!("another signer: {new}; before: {old}")),
            (Some(old), None) => held.push(format!("nobody signed it; before: {old}")),
            _ => {}
        }
        let imports = candidate.new_imports();
        if !imports.is_empty() {
            held.push(format!("imports that the old version does not have: {}", imports.join(", ")));
        }
        Ok(NewVersion { bytes, source, candidate, held, costs: None })
    }
}

impl NewVersion {
    /// Runs the conformance checks on both versions. One that cannot be run is no obstacle: it may need its grants.
    fn measure(&mut self, config: &Config, present: &Present, fetcher: &Fetcher) {
        let measure = |file: &Path| CallCosts::measure(config, file).map_err(|error| error.to_string());
        self.costs =
            Some([measure(&config.plugins.join(&present.file)), measure(&fetcher.file(&self.candidate.digest))]);
    }

    /// What differs from the present version.
    fn describe(&self, config: &Config, present: &Present) -> String {
        let mut out = self.candidate.comparison(config);
        let version = |source: &LockedSource| source.version.clone().unwrap_or_else(|| source.reference.clone());
        let (old, new) = (version(&present.source), version(&self.source));
        let _ = writeln!(out, "  version  {} (before: {})", text::line(&new), text::line(&old));
        let _ = writeln!(out, "  signed   {}", text::line(&fetched::signed_by(&self.source)));
        let present_file = config.plugins.join(&present.file);
        let _ = writeln!(out, "  size     {}{}", show_bytes(self.bytes.len() as u64), size_before(&present_file));
        if let Some([old, new]) = &self.costs {
            let _ = writeln!(out, "  fuel     {} (before: {})", describe_costs(new), describe_costs(old));
        }
        for need in self.candidate.profile.needs.all().iter().filter(|need| !need.optional) {
            let _ = writeln!(out, "  needs    {}", need.describe());
        }
        for why in &self.held {
            let _ = writeln!(out, "  held     {}", text::line(why));
        }
        out
    }

    /// Puts the component in the place of the present one. Returns the text of the lock.
    ///
    /// If the process ends in between, the lock has both digests: whichever component is there may use the grants.
    fn install(&self, config: &Config, present: &Present) -> Result<String, Failure> {
        let file = config.plugins.join(&present.file);
        let write_lock = files::lock_for_writing(&[&config.lock, &file])?;
        let mut lock = pins::read(&config.lock)?;
        if lock.pin(&present.mount) != Some(&present.pin) {
            return Err(Failure::Failed(format!("another process changed \"{}\"; try again", present.mount)));
        }
        lock.set(present.mount.clone(), Pin { next: Some(self.candidate.digest), ..present.pin.clone() });
        pins::write(&write_lock, config, &lock)?;
        files::replace(&write_lock, &file, &self.bytes, 0o644)?;
        let Profile { exports, imports, .. } = self.candidate.profile.clone();
        let (digest, source) = (self.candidate.digest, Some(self.source.clone()));
        lock.set(present.mount.clone(), Pin { digest, next: None, source, exports, imports });
        pins::write(&write_lock, config, &lock)?;
        Ok(lock.to_text())
    }
}

fn size_before(file: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "the operator's plugin directory")]
    let size = std::fs::metadata(file).map(|meta| meta.len());
    size.map(|size| format!(" (before: {})", show_bytes(size))).unwrap_or_default()
}

/// The fuel of the conformance checks, in words.
fn describe_costs(costs: &Result<CallCosts, String>) -> String {
    match costs {
        Ok(CallCosts { fuel, calls, is_good }) => {
            let failed = if *is_good { "" } else { ", and checks failed" };
            format!("at most {fuel} in each of {calls} calls without grants{failed}")
        }
        Err(why) => format!("not known: {}", text::line(why)),
    }
}

fn costs_to_json(costs: &Result<CallCosts, String>) -> Value {
    match costs {
        Ok(CallCosts { fuel, calls, is_good }) => json!({ "fuel": fuel, "calls": calls, "good": is_good }),
        Err(why) => json!({ "why": why }),
    }
}

fn report(args: &UpgradeArgs, present: &Present, new: Option<&NewVersion>, outcome: &str) -> Result<ExitCode, Failure> {
    if args.write.json {
        let describe = |digest: &Digest, source: &LockedSource| -> Value {
            json!({
                "digest": digest.to_string(), "reference": source.reference, "version": source.version,
                "signedBy": fetched::signed_by(source), "revoked": source.revoked.as_ref().map(revoked::to_json),
            })
        };
        output::print_json(&json!({
            "mount": present.mount.as_str(), "outcome": outcome,
            "old": describe(&present.pin.digest, &present.source),
            "new": new.map(|new| describe(&new.candidate.digest, &new.source)),
            "held": new.map(|new| &new.held),
            "costs": new.and_then(|new| new.costs.as_ref()).map(|[old, new]| {
                json!({ "old": costs_to_json(old), "new": costs_to_json(new) })
            }),
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}
