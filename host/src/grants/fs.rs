//! `fs`: directories, read-only.
//!
//! A path becomes a handle when the mount is configured. During a call every path is resolved by the kernel below such
//! a handle (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS`), and only regular files and directories are
//! opened: what a path leads to is looked at through `O_PATH` first, so that no FIFO or device is ever touched.

mod beneath;
mod config;
mod entries;
mod links;
mod place;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use toml_edit::{Item, TableLike};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DirectoryEntry, ErrorCode, OpenFlags, PathFlags,
};
use wasmtime_wasi::{FsPerms, OpenMode, WasiCtxBuilder};

use super::edit::{self, Flag, Gift, Here};
use super::needs::{Need, Needed};
use super::{Ambient, Grant, Scope, SharedTrail, Typed, View, wasi};
use crate::model::{Consent, Guard, MountName, Verdict, command, text};
use beneath::{Kind, Refused};
pub use config::Config;
use entries::Entries;

/// The kind.
pub struct Fs;

/// What a mount holds.
pub struct Mount {
    places: Vec<place::Place>,
}

impl Mount {
    /// Whether any of the directories lies on a file system that can stall (network, FUSE, unknown).
    pub fn may_stall(&self) -> bool {
        self.places.iter().any(place::Place::may_stall)
    }
}

/// What a call holds.
pub struct Call {
    dirs: Vec<(Arc<str>, std::fs::File)>,
    cross_mounts: bool,
    mount: MountName,
    trail: SharedTrail,
}

impl Call {
    fn deny(&self, what: &str, cure: &str) {
        self.trail.add(Fs::NAME, &format!("open {what}"), Verdict::Denied, || {
            Some(cure.replace("NAME", self.mount.as_str()))
        });
    }
}

const ABSENT: &str = "put the granted directory back, or grant another; a new one in its place is read after a restart (unless wall = \"off\")";
const WITHHELD: &str = "a person allows it for each read: use a client that can be asked (MCP 2026-07-28, elicitation); to allow it for good, run: ";
const READ_ONLY: &str = "nothing allows this: filesystem grants are read-only";
const SPECIAL: &str = "nothing allows this: only regular files and directories can be opened";
const OUTSIDE: &str = "the path leads out of the granted directory; to allow it, grant the directory that it leads to, under another guest path, in fs of [mounts.NAME]";

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
        linker
            .instance(&wasi("filesystem/preopens"))?
            .func_wrap("get-directories", |store, (): ()| Ok((directories(store)?,)))?;
        let mut types = linker.instance(&wasi("filesystem/types"))?;
        types.func_wrap("[method]descriptor.open-at", |store, params| Ok((open_at(store, params)?,)))?;
        types.resource("directory-entry-stream", ResourceType::host::<Entries>(), |mut store, rep| {
            store.data_mut().ctx().table.delete(Resource::<Entries>::new_own(rep))?;
            Ok(())
        })?;
        types.func_wrap("[method]descriptor.read-directory", |store, params| Ok((read_directory(store, params)?,)))?;
        types.func_wrap("[method]directory-entry-stream.read-directory-entry", |store, params| {
            Ok((next_entry(store, params)?,))
        })?;
        Ok(())
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
        let linked = mount.places.iter().filter_map(|place| Some((place.guest(), links::find(&place.handle()?)?)));
        let open = mount.places.iter().filter_map(|place| {
            let mode = place.handle()?.metadata().ok()?.permissions().mode();
            Some(format!(
                "anyone on this machine can change what lies in \"{}\", and so what clients read of it; take away its write permission for others",
                (mode & 0o002 != 0).then(|| place.guest())?
            ))
        });
        let linked = linked
            .map(|(guest, file)| {
                format!("\"{guest}\" holds hard links, the first is \"{file}\": what they lead to can be read even if it lies elsewhere too")
            });
        open.chain(linked).collect()
    }

    fn open(mount: &Mount, _: &mut WasiCtxBuilder, scope: &Scope<'_>) -> Call {
        let mut dirs = Vec::new();
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
            match place.handle() {
                Some(dir) => dirs.push((place.guest(), dir)),
                // The guest sees no such directory; the trail says why.
                None => scope.trail.add(Self::NAME, &place.guest(), Verdict::Unavailable, || Some(ABSENT.to_owned())),
            }
        }
        let cross_mounts = mount.places.iter().any(place::Place::crosses_mounts);
        Call { dirs, cross_mounts, mount: scope.mount.clone(), trail: scope.trail.clone() }
    }
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

fn new_dir(dir: std::fs::File) -> Dir {
    // Operations run on the thread that polls the call: cheap, and safe because nothing that can stall is opened on
    // the front (a mount that may stall has threads of its own).
    Dir::new(dir, FsPerms::ReadOnly, OpenMode::READ, true)
}

fn directories<T: View>(mut store: StoreContextMut<'_, T>) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
    let state = store.data_mut();
    let mut dirs = Vec::new();
    for (guest, dir) in &state.opened().fs.dirs {
        dirs.push((guest.to_string(), new_dir(dir.try_clone()?)));
    }
    for (guest, _) in &dirs {
        state.opened().fs.trail.add(Fs::NAME, guest, Verdict::Allowed, || None);
    }
    let table = state.ctx().table;
    dirs.into_iter().map(|(guest, dir)| Ok((table.push(Descriptor::Dir(dir))?, guest))).collect()
}

type OpenAt = (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags);

fn open_at<T: View>(
    mut store: StoreContextMut<'_, T>,
    params: OpenAt,
) -> wasmtime::Result<Result<Resource<Descriptor>, ErrorCode>> {
    let (fd, path_flags, path, open_flags, flags) = params;
    let state = store.data_mut();
    let base = match state.ctx().table.get(&fd)? {
        Descriptor::Dir(dir) => Arc::clone(&dir.dir),
        Descriptor::File(_) => return Ok(Err(ErrorCode::NotDirectory)),
    };
    let call = &state.opened().fs;
    let shown = text::excerpt(&path, 160);
    let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if flags.intersects(sync) {
        return Ok(Err(ErrorCode::Unsupported));
    }
    let changes = open_flags.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE)
        || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
    if changes && Guard::ReadOnly.is_on() {
        call.deny(&shown, READ_ONLY);
        return Ok(Err(ErrorCode::NotPermitted));
    }
    let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
    let want_dir = open_flags.contains(OpenFlags::DIRECTORY);
    let opened = match beneath::open(&base, &path, follow, want_dir, call.cross_mounts) {
        Ok((file, Kind::Directory)) => Descriptor::Dir(new_dir(file)),
        Ok((file, Kind::File)) => Descriptor::File(File::new(file, FsPerms::ReadOnly, OpenMode::READ, true)),
        Err(Refused::Outside) => {
            call.deny(&shown, OUTSIDE);
            return Ok(Err(ErrorCode::NotPermitted));
        }
        Err(Refused::Special) => {
            call.deny(&shown, SPECIAL);
            return Ok(Err(ErrorCode::NotPermitted));
        }
        Err(Refused::Failed(code)) => return Ok(Err(code)),
    };
    Ok(Ok(state.ctx().table.push(opened)?))
}

fn read_directory<T: View>(
    mut store: StoreContextMut<'_, T>,
    (fd,): (Resource<Descriptor>,),
) -> wasmtime::Result<Result<Resource<Entries>, ErrorCode>> {
    let table = store.data_mut().ctx().table;
    let dir = match table.get(&fd)? {
        Descriptor::Dir(dir) => Arc::clone(&dir.dir),
        Descriptor::File(_) => return Ok(Err(ErrorCode::NotDirectory)),
    };
    match Entries::open(&dir) {
        Ok(entries) => Ok(Ok(table.push(entries)?)),
        Err(code) => Ok(Err(code)),
    }
}

fn next_entry<T: View>(
    mut store: StoreContextMut<'_, T>,
    (stream,): (Resource<Entries>,),
) -> wasmtime::Result<Result<Option<DirectoryEntry>, ErrorCode>> {
    Ok(store.data_mut().ctx().table.get_mut(&stream)?.next().transpose())
}

#[cfg(test)]
mod tests;
