//! `fs`: directories, read-only.
//!
//! A path becomes a handle when the mount is configured. During a call the kernel resolves every path below such a handle
//! (`resolve`), and only regular files and directories are opened. All functions of `wasi:filesystem` are belljar's own
//! (`functions`, `changes`). What may wait for a drive runs on a thread of the call's own ([`super::OwnThread`]); what is
//! looked at outside of calls has a thread and a time limit (`patience`).

mod changes;
mod config;
mod descriptor;
mod entries;
mod functions;
mod hard_links;
mod links;
mod mounts;
mod patience;
mod place;
mod record;
mod resolve;
mod stream;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toml_edit::{Item, TableLike};
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;

use super::edit::{self, Flag, Gift, Here};
use super::needs::{Need, Needed};
use super::{Ambient, Grant, Scope, Typed, View};
use crate::model::{Consent, Verdict, command, text};
pub use config::Config;
pub use patience::{Stalled, within};
pub use record::Call;

/// The kind.
pub struct Fs;

/// What a mount holds.
pub struct Mount {
    places: Vec<place::Place>,
}

impl Mount {
    /// Whether a call needs a thread of its own from the beginning, because one of the directories lies on a file system that
    /// can stall (network, FUSE, unknown), or has to be looked for. Waits for nothing.
    pub fn may_stall(&self) -> bool {
        // Each of them is looked at, because that asks for what is missing.
        self.places.iter().filter(|place| place.needs_thread()).count() > 0
    }
}

/// What is mounted below `dir` and is on no local file system, so that it may stall. `dir` has no symbolic link in it.
pub fn stalling_below(dir: &Path) -> Vec<PathBuf> {
    mounts::stalling_below(dir)
}

const WITHHELD: &str = "a person allows it for each read, in a client that can ask them (MCP 2026-07-28, elicitation); to allow it for good, run: ";

impl Grant for Fs {
    const NAME: &'static str = "fs";
    const IMPORTS: &'static [&'static str] = &["wasi:filesystem/"];
    const EXAMPLE: &'static str = "fs = { \"/data\" = \"DIR\" }";
    const GIVE: Flag = Flag {
        name: "fs",
        value: "GUEST=HOST",
        help: "Let the provider read the directory HOST, which it sees as GUEST. Without =HOST: no longer ask for GUEST first",
    };
    const TAKE: &'static str = "GUEST";
    const NEED: Needed = Needed { key: "path", check: check_path, is_free: false, has_any: true, has_value: false };
    type Config = Config;
    type Mount = Mount;
    type Call = Call;

    fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        functions::link(linker)
    }

    fn configure(config: &Config, ambient: &Ambient) -> Result<Mount, String> {
        let open = |(guest, granted): (&String, &config::Granted)| {
            place::Place::open(guest, &granted.path, granted.ask, ambient)
        };
        Ok(Mount { places: config.0.iter().map(open).collect::<Result<_, _>>()? })
    }

    fn needs_consent(config: &Config) -> bool {
        config.0.values().any(|granted| granted.ask)
    }

    fn directories(config: &Config, ambient: &Ambient) -> Vec<PathBuf> {
        config.0.values().filter_map(|granted| place::find(&granted.path, ambient).ok()).collect()
    }

    fn is_held(mount: &Mount) -> bool {
        !mount.places.is_empty()
    }

    fn describe(config: &Config) -> Vec<String> {
        config.0.iter().map(|(guest, granted)| described(guest, granted, granted.ask)).collect()
    }

    fn unasked(config: &Config) -> Vec<(String, String)> {
        let asked = config.0.iter().filter(|(_, granted)| granted.ask);
        asked.map(|(guest, granted)| (described(guest, granted, true), described(guest, granted, false))).collect()
    }

    fn place_of(config: &Config, what: &str, ambient: &Ambient) -> Option<PathBuf> {
        place::find(&config.0.get(what)?.path, ambient).ok()
    }

    fn in_words(config: &Config) -> Vec<String> {
        let shown = |text: &str| text::excerpt(text, 500);
        let one = |(guest, granted): (&String, &config::Granted)| {
            let asked = if granted.ask { ", when a person allows it for a read" } else { "" };
            format!(
                "read every file below \"{}\", which it sees as \"{}\"{asked}; it cannot change anything there",
                shown(&granted.path.to_string_lossy()),
                shown(guest)
            )
        };
        config.0.iter().map(one).collect()
    }

    fn meets(config: &Config, need: &Need) -> bool {
        let is_it = |guest: &String| need.any || need.what.as_deref().is_some_and(|path| same_path(guest, path));
        config.0.keys().any(is_it)
    }

    fn typed(mount: &str, need: Option<&Need>) -> Option<Typed> {
        let guest = need.and_then(|need| need.what.as_deref()).unwrap_or("/data");
        // The operator's own name for the mount, never a provider's word: it leads to a directory of the host.
        let host = format!("~/{mount}");
        Some(Typed {
            line: format!("fs = {{ \"{guest}\" = \"{host}\" }}"),
            flags: vec!["--fs".to_owned(), format!("{guest}={host}")],
            before: Some(format!("mkdir -p {host}")),
        })
    }

    fn give(mount: &mut dyn TableLike, gift: &Gift, here: &Here) -> Result<(), String> {
        // Without a directory: the one that stands there already, for good.
        if !gift.what.contains('=') && is_asked_for(mount, &gift.what) {
            return Self::keep(mount, &gift.what);
        }
        let (guest, host) = gift.pair(&Self::GIVE)?;
        edit::set_entry(mount, Self::NAME, guest, here.written(host).into())
    }

    fn keep(mount: &mut dyn TableLike, guest: &str) -> Result<(), String> {
        let granted = mount.get(Self::NAME).and_then(|all| all.get(guest));
        let path = granted.and_then(|granted| granted.get("path")).and_then(Item::as_str).map(str::to_owned);
        let path = path.ok_or_else(|| format!("fs: \"{guest}\" is not granted as one that is asked for first"))?;
        edit::set_entry(mount, Self::NAME, guest, path.into())
    }

    fn take(mount: &mut dyn TableLike, what: &str) -> Result<(), String> {
        edit::remove_entry(mount, Self::NAME, what)
    }

    fn warnings(mount: &Mount) -> Vec<String> {
        mount.places.iter().flat_map(warnings).collect()
    }

    fn open(mount: &Mount, _: &mut WasiCtxBuilder, scope: &Scope<'_>) -> Call {
        let mut roots = Vec::new();
        for place in &mount.places {
            let consent = Consent { grant: Self::NAME, what: place.guest().to_string() };
            if place.asks() && !scope.consent.contains(&consent) {
                // The guest sees no such directory.
                let line = || command::line(["grant", scope.mount.as_str(), "--fs", &consent.what]);
                let cure = || Some(format!("{WITHHELD}{}", line()));
                scope.trail.add(Self::NAME, &consent.what, Verdict::Denied, cure);
                scope.trail.ask(consent);
                continue;
            }
            match place.root(scope.thread.may_wait()) {
                Ok(root) => roots.push(root),
                // The guest sees no such directory; the trail says why.
                Err(absent) => {
                    let cure = || Some(absent.cure().to_owned());
                    scope.trail.add(Self::NAME, &place.guest(), Verdict::Unavailable, cure);
                }
            }
        }
        Call::new(roots, scope.mount.clone(), scope.trail.clone(), scope.thread.clone())
    }
}

/// A directory, in the operator's words; `is_asked`: whether it must be asked for.
fn described(guest: &str, granted: &config::Granted, is_asked: bool) -> String {
    let asked = if is_asked { ", asked for first" } else { "" };
    format!("{guest} = {} (read-only{asked})", granted.path.display())
}

/// Whether `guest` stands in the mount's table as a directory that a person is asked for.
fn is_asked_for(mount: &dyn TableLike, guest: &str) -> bool {
    let granted = mount.get(Fs::NAME).and_then(|all| all.get(guest));
    granted.is_some_and(|granted| granted.get("path").is_some())
}

/// A guest path that a provider may declare: plain segments, so that it can stand in a command as it is.
fn check_path(path: &str) -> Result<String, String> {
    let is_plain = |segment: &str| {
        segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) && !segment.starts_with(['.', '-'])
    };
    let below = path.strip_prefix('/').ok_or("expected a path that begins with \"/\"")?;
    if path.len() > 200
        || (!below.is_empty() && below.split('/').any(|segment| segment.is_empty() || !is_plain(segment)))
    {
        return Err("expected a path such as \"/data\": letters, digits, \".\", \"_\", \"-\"".to_owned());
    }
    Ok(path.to_owned())
}

/// Whether two guest paths are one, however many slashes end them.
fn same_path(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// What the operator should know about one directory.
fn warnings(place: &place::Place) -> Vec<String> {
    let Ok(root) = place.root(false) else { return Vec::new() };
    let guest = place.guest();
    if root.may_stall() {
        return vec![format!(
            "\"{guest}\" lies on a drive that may not answer in time; it is not looked through for hard links"
        )];
    }
    let own = root.clone();
    let look = move || {
        let mode = own.dir().metadata().map_or(0, |meta| meta.permissions().mode());
        (mode & 0o002 != 0, hard_links::find(own.dir()))
    };
    let Ok((is_open, linked)) = within(root.host(), look) else {
        return vec![format!("\"{guest}\" could not be looked through in time: its drive does not answer, or is slow")];
    };
    let open = is_open.then(|| {
        format!(
            "anyone on this machine can change what lies in \"{guest}\", and so what clients read of it; take away its write permission for others"
        )
    });
    let linked = linked.map(|file| {
        format!("\"{guest}\" holds hard links, the first is \"{file}\": what they lead to can be read even if it lies elsewhere too")
    });
    open.into_iter().chain(linked).collect()
}

#[cfg(test)]
mod tests;
