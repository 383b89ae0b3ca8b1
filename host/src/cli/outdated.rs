//! `belljar outdated`: asks the registries for newer versions of the components that were fetched. Changes nothing.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::{output, releases, table};
use crate::config::Config;
use crate::config::lock::LockedSource;
use crate::model::{MountName, command, text};
use crate::server::failure::Failure;
use crate::server::fetcher::{FetchError, Fetcher};
use crate::server::location::LocationArgs;
use crate::server::{configuration, log, pins};

/// What is known of newer versions of one mount.
struct State {
    mount: MountName,
    source: LockedSource,
    found: Found,
}

enum Found {
    /// There is a newer release.
    Newer(String),
    /// There is none.
    Current,
    /// The registry cannot say. Holds the reason.
    Unknown(String),
}

/// Lists the mounts with newer versions. The exit code is 1 if there are any.
pub(super) fn run(at: &LocationArgs, as_json: bool) -> Result<ExitCode, Failure> {
    log::start("warn");
    let config = configuration::file(at)?;
    let states = states(&config)?;
    match as_json {
        true => output::print_json(&json!({ "mounts": states.iter().map(State::to_json).collect::<Vec<_>>() }))?,
        false if states.is_empty() => output::print("No component was fetched.\n")?,
        false => table::print(&to_text(&states))?,
    }
    let is_outdated = states.iter().any(|state| !matches!(state.found, Found::Current));
    Ok(if is_outdated { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn states(config: &Config) -> Result<Vec<State>, Failure> {
    let lock = pins::read(&config.lock)?;
    let fetched: Vec<_> = lock.pins().filter_map(|(name, pin)| Some((name.clone(), pin.source.clone()?))).collect();
    if fetched.is_empty() {
        return Ok(Vec::new());
    }
    let fetcher = Fetcher::new(config)?;
    let state = |(mount, source): (MountName, LockedSource)| {
        let found = found(&fetcher, &source).unwrap_or_else(|error| Found::Unknown(error.to_string()));
        State { mount, source, found }
    };
    Ok(fetched.into_iter().map(state).collect())
}

fn found(fetcher: &Fetcher, source: &LockedSource) -> Result<Found, FetchError> {
    if releases::split(&source.reference).is_none() {
        return Ok(Found::Unknown("it is a file, of which no newer version is known".to_owned()));
    }
    let tags = fetcher.tags(&source.reference)?;
    Ok(releases::newer(&tags.tags, source).map_or(Found::Current, |tag| Found::Newer(tag.to_owned())))
}

impl State {
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
            "newer": newest, "why": why,
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
    }
    out
}
