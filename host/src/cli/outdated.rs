//! `belljar outdated`: asks the registries for newer versions of the components that were fetched, and for revoked ones. Writes
//! into the lock which are revoked, so that everything else knows it without a network.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::{output, releases, revoked, table};
use crate::config::Config;
use crate::config::lock::{LockedRevocation, LockedSource, Pin};
use crate::model::{Digest, MountName, command, text};
use crate::server::failure::Failure;
use crate::server::fetcher::Fetcher;
use crate::server::location::LocationArgs;
use crate::server::{configuration, log, pins};

/// What is known of newer versions of one mount.
struct State {
    mount: MountName,
    source: LockedSource,
    digest: Digest,
    found: Found,
    /// Why the version that is served was revoked.
    revoked: Option<LockedRevocation>,
}

enum Found {
    /// There is a newer release.
    Newer(String),
    /// There is none.
    Current,
    /// The registry cannot say. Holds the reason.
    Unknown(String),
}

/// Lists the mounts with newer versions. The exit code is 1 if there are any, or one is revoked.
pub(super) fn run(at: &LocationArgs, as_json: bool) -> Result<ExitCode, Failure> {
    log::start("warn");
    let config = configuration::file(at)?;
    let states = states(&config)?;
    let learned: Vec<_> = states.iter().filter_map(State::learned).collect();
    if !learned.is_empty() {
        revoked::remember(&config, &learned)?;
    }
    match as_json {
        true => output::print_json(&json!({ "mounts": states.iter().map(State::to_json).collect::<Vec<_>>() }))?,
        false if states.is_empty() => output::print("No component was fetched.\n")?,
        false => table::print(&to_text(&states))?,
    }
    let is_outdated = states.iter().any(|state| !matches!(state.found, Found::Current) || state.revoked.is_some());
    Ok(if is_outdated { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn states(config: &Config) -> Result<Vec<State>, Failure> {
    let lock = pins::read(&config.lock)?;
    let fetched: Vec<(MountName, LockedSource, &Pin)> =
        lock.pins().filter_map(|(name, pin)| Some((name.clone(), pin.source.clone()?, pin))).collect();
    if fetched.is_empty() {
        return Ok(Vec::new());
    }
    let fetcher = Fetcher::new(config)?;
    let state = |(mount, source, pin): (MountName, LockedSource, &Pin)| {
        // What cannot be asked stays as the lock has it.
        let mut revoked = source.revoked.clone();
        let found = found(&fetcher, &source, &pin.digest, &mut revoked);
        let found = found.unwrap_or_else(|error| Found::Unknown(error.message()));
        State { mount, source, digest: pin.digest, found, revoked }
    };
    Ok(fetched.into_iter().map(state).collect())
}

/// Asks for the list of revoked versions, and for newer ones.
fn found(
    fetcher: &Fetcher,
    source: &LockedSource,
    digest: &Digest,
    revoked: &mut Option<LockedRevocation>,
) -> Result<Found, Failure> {
    let list = fetcher.revoked(&revoked::fetchable(source, digest))?;
    *revoked = revoked::learned(&list, source, digest)?;
    if releases::split(&source.reference).is_none() {
        return Ok(Found::Unknown("it is a file, of which no newer version is known".to_owned()));
    }
    let tags = revoked::without_revoked(fetcher.tags(&source.reference)?.tags, &list)?;
    Ok(releases::newer(&tags, source).map_or(Found::Current, |tag| Found::Newer(tag.to_owned())))
}

impl State {
    /// What the lock does not know yet.
    fn learned(&self) -> Option<(MountName, Digest, Option<LockedRevocation>)> {
        (self.revoked != self.source.revoked).then(|| (self.mount.clone(), self.digest, self.revoked.clone()))
    }

    fn version(&self) -> &str {
        let tag = releases::split(&self.source.reference).and_then(|(_, tag)| tag);
        self.source.version.as_deref().or(tag).unwrap_or("unknown")
    }

    fn to_json(&self) -> serde_json::Value {
        let (newest, why) = match &self.found {
            Found::Newer(tag) => (Some(tag), None),
            Found::Current => (None, None),
            Found::Unknown(why) => (None, Some(why)),
        };
        json!({
            "mount": self.mount.as_str(), "reference": self.source.reference, "version": self.version(),
            "newer": newest, "why": why, "revoked": self.revoked.as_ref().map(revoked::to_json),
        })
    }
}

fn to_text(states: &[State]) -> String {
    let width = table::width(states.iter().map(|state| state.mount.as_str()), 40);
    let mut out = String::new();
    for state in states {
        let name = table::padded(table::NAME, &state.mount, width);
        let version = text::excerpt(state.version(), 40);
        let found = match &state.found {
            Found::Newer(tag) => {
                let upgrade = command::line(["upgrade", state.mount.as_str()]);
                let tag = text::excerpt(tag, 40);
                format!("{}  {upgrade}", table::styled(table::WARN, format!("{version} -> {tag}")))
            }
            Found::Current => table::styled(table::GOOD, format!("{version} is the newest")),
            Found::Unknown(why) => table::styled(table::BAD, format!("{version}: {why}")),
        };
        let _ = writeln!(out, "{name}  {found}");
        if let Some(revoked) = &state.revoked {
            let words = format!("{revoked}; {}", revoked.cure(&state.mount));
            let _ = writeln!(out, "{:width$}  {}", "", table::styled(table::BAD, text::line(&words)));
        }
    }
    out
}
