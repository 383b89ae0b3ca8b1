//! `belljar trust`: lets a component use its mount's grants as it is now, after a look at what changed. None of its code
//! runs for that.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::serving::{self, Changed};
use super::{Failure, Where, Yes, change, open, pins, store};
use crate::catalog;
use crate::config::Config;
use crate::config::lock::{Lock, Pin};
use crate::model::{Digest, MountName, command};
use crate::sandbox::Profile;

pub(super) fn run(at: &Where, mounts: &[String], yes: Yes) -> Result<ExitCode, Failure> {
    super::log::start("warn");
    let mut names =
        mounts.iter().map(|name| MountName::new(name)).collect::<Result<Vec<_>, _>>().map_err(Failure::Misused)?;
    names.sort_unstable();
    names.dedup();
    let (path, given) = open::given(at)?;
    let config = Config::read(given)?;
    let mut pending = Vec::new();
    for name in &names {
        let candidate = Candidate::find(&config, name)?;
        if config.mounts.get(name).is_none_or(|own| !own.needs_pin()) {
            super::say(yes.json, &format!("\"{name}\" holds no grants, and needs no trust\n"))?;
        } else if candidate.is_trusted() {
            super::say(
                yes.json,
                &format!("\"{name}\" is trusted already: \"{}\" is {}\n", candidate.file, candidate.digest),
            )?;
        } else {
            super::say(yes.json, &candidate.comparison(&config))?;
            pending.push(candidate);
        }
    }
    if pending.is_empty() {
        return told(yes, &pending);
    }
    if !change::agrees("Let what lies there now use these grants?", yes.yes)? {
        return Ok(ExitCode::FAILURE);
    }
    let turn = store::turn(&[&config.lock])?;
    let mut lock = pins::read(&config.lock)?;
    pending.iter().for_each(|candidate| candidate.pin(&mut lock));
    pins::write(&turn, &config, &lock)?;
    drop(turn);
    for Candidate { name, digest, .. } in &pending {
        let changed = serving::told(&config.state, &path, Changed::Lock(&lock.to_text()), Some(name));
        super::say(yes.json, &format!("\"{name}\" is trusted as {digest}. {changed}"))?;
    }
    told(yes, &pending)
}

fn told(yes: Yes, trusted: &[Candidate]) -> Result<ExitCode, Failure> {
    if yes.json {
        let one =
            |one: &Candidate| json!({ "mount": one.name.as_str(), "file": one.file, "digest": one.digest.to_string() });
        super::print_json(&json!({ "trusted": trusted.iter().map(one).collect::<Vec<_>>() }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The component of a mount as it lies there, and what the lock knows of it.
pub(super) struct Candidate {
    pub(super) name: MountName,
    pub(super) file: String,
    pub(super) digest: Digest,
    pub(super) profile: Profile,
    pinned: Option<Pin>,
}

impl Candidate {
    /// Reads the component of `mount`.
    ///
    /// # Errors
    /// When there is no such mount, its file is no provider, or the lock cannot be read.
    pub(super) fn find(config: &Config, mount: &MountName) -> Result<Self, Failure> {
        let dir = open::plugins(config)?;
        let found = catalog::find(config, &dir, |name| name == mount).map_err(|error| {
            Failure::Failed(format!("cannot read the plugin directory \"{}\": {error}", config.plugins.display()))
        })?;
        let Some(found) = found.into_iter().next() else {
            let place = config.plugins.display();
            return Err(Failure::Failed(format!(
                "there is no component for the mount \"{mount}\"; put \"{mount}.wasm\" into \"{place}\", or name another file there with component = \"FILE.wasm\" under [mounts.{mount}]"
            )));
        };
        let (digest, profile) = found.component.map_err(|why| {
            Failure::Failed(format!("\"{}\" of the mount \"{mount}\" cannot be trusted: {why}", found.file))
        })?;
        let pinned = pins::read(&config.lock)?.pin(mount).cloned();
        Ok(Self { name: found.name, file: found.file, digest, profile, pinned })
    }

    /// Whether the lock has these bytes.
    pub(super) fn is_trusted(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pin| pin.digest == self.digest)
    }

    /// Whether the lock has other bytes.
    pub(super) fn has_changed(&self) -> bool {
        self.pinned.as_ref().is_some_and(|pin| pin.digest != self.digest)
    }

    /// Puts these bytes into the lock.
    pub(super) fn pin(&self, lock: &mut Lock) {
        let Profile { exports, imports, .. } = self.profile.clone();
        lock.set(self.name.clone(), Pin { digest: self.digest, exports, imports });
    }

    /// Says which bytes a grant will be bound to.
    pub(super) fn binding(&self) -> String {
        let Self { name, file, digest, .. } = self;
        let before = match &self.pinned {
            Some(pin) if pin.digest != *digest => format!(" (the lock has {} of an earlier grant)", pin.digest),
            _ => String::new(),
        };
        let trust = command::line(["trust", name.as_str()]);
        format!("\"{file}\" as it is now may use it: {digest}{before}; for other bytes, run: {trust}\n")
    }

    /// What changed since the grants were given, for whoever decides.
    fn comparison(&self, config: &Config) -> String {
        let Self { name, file, digest, profile, pinned } = self;
        let mut out = format!("{name}  ({file})\n");
        let old = pinned
            .as_ref()
            .map_or_else(|| "none: its grants were never bound".to_owned(), |pin| pin.digest.to_string());
        let _ = writeln!(out, "  old      {old}\n  new      {digest}");
        let grants = config.mounts.get(name).map(|own| own.grants.describe()).unwrap_or_default();
        let held =
            |import: &str| grants.iter().map(|(kind, _)| *kind).find(|kind| Profile::kind_of(import) == Some(*kind));
        let (no_exports, no_imports) = (Vec::new(), Vec::new());
        let (exports, imports) = pinned.as_ref().map_or((&no_exports, &no_imports), |pin| (&pin.exports, &pin.imports));
        for (title, old, new) in [("exports", exports, &profile.exports), ("imports", imports, &profile.imports)] {
            // Of a newer tool chain, each has another version; that says nothing and would hide what does.
            let lacks =
                |names: &[String], name: &String| !names.iter().any(|other| unversioned(other) == unversioned(name));
            let gone = old.iter().filter(|name| lacks(new, name)).map(|name| format!("- {name}"));
            let come = new.iter().filter(|name| lacks(old, name)).map(|name| match held(name) {
                Some(kind) if title == "imports" => {
                    format!("+ {name}   (through this it can use its grant \"{kind}\")")
                }
                _ => format!("+ {name}"),
            });
            let mut lines: Vec<String> = gone.chain(come).collect();
            let versions = new.iter().filter(|name| !old.contains(name) && !lacks(old, name)).count();
            if versions > 0 {
                lines.push(format!("{versions} in another version"));
            }
            if lines.is_empty() {
                lines.push("as before".to_owned());
            }
            for (at, line) in lines.iter().enumerate() {
                let _ = writeln!(out, "  {:8} {line}", if at == 0 { title } else { "" });
            }
        }
        for (at, (kind, line)) in grants.iter().enumerate() {
            let _ = writeln!(out, "  {:8} {kind}: {line}", if at == 0 { "holds" } else { "" });
        }
        out
    }
}

/// The name of an interface without its version.
fn unversioned(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}
