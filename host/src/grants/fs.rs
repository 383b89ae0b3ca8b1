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
use super::{Ambient, Grant, Scope, View};
use crate::model::{Consent, Verdict, text};
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
        // Each of them is looked at.
        self.places.iter().fold(false, |may, place| place.needs_thread() || may)
    }
}

/// What is mounted below `dir` and is on no local file system, so that it may stall. `dir` has no symbolic link in it.
pub fn stalling_below(dir: &Path) -> Vec<PathBuf> {
    mounts::stalling_below(dir)
}

const WITHHELD: &str = "a person allows it for each read: use a client that can be asked (MCP 2026-07-28, elicitation), or take  ask = true  from it in fs of [mounts.NAME]";

impl Grant for Fs {
    const NAME: &'static str = "fs";
    const IMPORTS: &'static [&'static str] = &["wasi:filesystem/"];
    const EXAMPLE: &'static str = "fs = { \"/data\" = \"DIR\" }";
    const GIVE: Flag = Flag {
        name: "fs",
        value: "GUEST=HOST",
        help: "Let the provider read the directory HOST, which it sees as GUEST",
    };
    const TAKE: &'static str = "GUEST";
    const TYPED: &'static str = "--fs /data=DIR";
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
        let describe = |(guest, granted): (&String, &config::Granted)| {
            let asked = if granted.ask { ", asked for first" } else { "" };
            format!("{guest} = {} (read-only{asked})", granted.path.display())
        };
        config.0.iter().map(describe).collect()
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

    fn give(mount: &mut dyn TableLike, gift: &Gift, here: &Here) -> Result<(), String> {
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
                let cure = || Some(WITHHELD.replace("NAME", scope.mount.as_str()));
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
