//! `belljar verify`: compares the components in the plugin directory with the lock. Uses no network and runs no code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::{fetched, output, revoked, table};
use crate::catalog;
use crate::config::lock::{Lock, LockedRevocation, Pin};
use crate::config::{Config, OnRevoked};
use crate::model::{Digest, MountName, command, text};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, directories, log, pins};

/// A mount, beside its pin.
struct VerifiedMount {
    mount: MountName,
    pin: Option<Pin>,
    /// The digest of its component. `None` if there is none.
    found: Option<Digest>,
}

/// How a component stands to its pin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is the pinned one.
    Same,
    /// An upgrade was interrupted.
    HalfUpgraded,
    /// It has other bytes.
    Changed,
    /// The pin has no component.
    Absent,
    /// It was never pinned: it can only compute.
    Unpinned,
}

/// Compares each mount. The exit code is 1 if one differs, or is stopped because it was revoked.
pub(super) fn run(at: &LocationArgs, as_json: bool) -> Result<ExitCode, Failure> {
    log::start("warn");
    let config = configuration::file(at)?;
    let lock = pins::read(&config.lock)?;
    let mounts = mounts(&config, &lock)?;
    match as_json {
        true => {
            output::print_json(&json!({ "mounts": mounts.iter().map(VerifiedMount::to_json).collect::<Vec<_>>() }))?
        }
        false if mounts.is_empty() => output::print("There are no components.\n")?,
        false => table::print(&to_text(&mounts))?,
    }
    let stops = config.trust.revoked == OnRevoked::Stop;
    let is_stopped = |one: &VerifiedMount| stops && one.revoked().is_some();
    let is_fine =
        mounts.iter().all(|one| matches!(one.standing(), Standing::Same | Standing::Unpinned) && !is_stopped(one));
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn mounts(config: &Config, lock: &Lock) -> Result<Vec<VerifiedMount>, Failure> {
    let dir = directories::open_plugins(config)?;
    let found = catalog::read_components(config, &dir, |_| true)?;
    let found: BTreeMap<MountName, Option<Digest>> =
        found.into_iter().map(|one| (one.name, one.component.ok().map(|(digest, _)| digest))).collect();
    let pinned = lock.pins().map(|(name, _)| name);
    let names: std::collections::BTreeSet<&MountName> = found.keys().chain(pinned).collect();
    let one = |name: &MountName| VerifiedMount {
        mount: name.clone(),
        pin: lock.pin(name).cloned(),
        found: found.get(name).copied().flatten(),
    };
    Ok(names.into_iter().map(one).collect())
}

impl VerifiedMount {
    /// Why its publisher revoked it.
    fn revoked(&self) -> Option<&LockedRevocation> {
        self.pin.as_ref()?.source.as_ref()?.revoked.as_ref()
    }

    fn standing(&self) -> Standing {
        match (&self.pin, &self.found) {
            (None, _) => Standing::Unpinned,
            (Some(pin), Some(found)) if pin.digest == *found && pin.next.is_none() => Standing::Same,
            (Some(pin), Some(found)) if pin.digest == *found || pin.next == Some(*found) => Standing::HalfUpgraded,
            (Some(_), Some(_)) => Standing::Changed,
            (Some(_), None) => Standing::Absent,
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let standing = match self.standing() {
            Standing::Same => "same",
            Standing::HalfUpgraded => "half-upgraded",
            Standing::Changed => "changed",
            Standing::Absent => "absent",
            Standing::Unpinned => "unpinned",
        };
        let source = self.pin.as_ref().and_then(|pin| pin.source.as_ref());
        json!({
            "mount": self.mount.as_str(), "standing": standing, "found": self.found.map(|digest| digest.to_string()),
            "pinned": self.pin.as_ref().map(|pin| pin.digest.to_string()),
            "reference": source.map(|source| &source.reference),
            "manifest": source.and_then(|source| source.manifest).map(|digest| digest.to_string()),
            "signedBy": source.map(fetched::signed_by), "revoked": self.revoked().map(revoked::to_json),
        })
    }
}

/// A pin without a component: somebody removed the file, or `add` was interrupted.
fn absent(mount: &str, pin: Option<&Pin>) -> String {
    let remove = command::line(["remove", mount]);
    let Some(source) = pin.and_then(|pin| pin.source.as_ref()) else {
        return format!("has a pin and no component; to remove it: {remove}");
    };
    let named = ["--as", mount];
    let name = if fetched::default_name(&source.reference) == mount { &[][..] } else { &named };
    let add = ["add", &source.reference].into_iter().chain(name.iter().copied());
    format!("has a pin and no component; to fetch it: {}; to remove the pin: {remove}", command::line(add))
}

fn to_text(mounts: &[VerifiedMount]) -> String {
    let width = table::width(mounts.iter().map(|one| one.mount.as_str()), 40);
    let mut out = String::new();
    for one in mounts {
        let name = table::padded(table::NAME, &one.mount, width);
        let mount = one.mount.as_str();
        let (style, words) = match one.standing() {
            Standing::Same => (table::GOOD, "is the pinned component".to_owned()),
            Standing::HalfUpgraded => {
                (table::WARN, format!("an upgrade was interrupted; run: {}", command::line(["upgrade", mount])))
            }
            Standing::Changed => (
                table::BAD,
                format!("has other bytes than the lock says; to look at them: {}", command::line(["trust", mount])),
            ),
            Standing::Absent => (table::BAD, absent(mount, one.pin.as_ref())),
            Standing::Unpinned => (table::FAINT, "has no pin, and no grants".to_owned()),
        };
        let _ = writeln!(out, "{name}  {}", table::styled(style, words));
        if let Some(source) = one.pin.as_ref().and_then(|pin| pin.source.as_ref()) {
            let reference = text::line(&source.reference);
            let _ = writeln!(out, "{:width$}  {reference}, signed by {}", "", text::line(&fetched::signed_by(source)));
        }
        if let Some(revoked) = one.revoked() {
            let words = format!("{revoked}; {}", revoked.cure(&one.mount));
            let _ = writeln!(out, "{:width$}  {}", "", table::styled(table::BAD, text::line(&words)));
        }
    }
    out
}
