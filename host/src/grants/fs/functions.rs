//! Every function of `wasi:filesystem`, in our own words: none of the library's is left, because those walk paths on their
//! own, enter mounts, and wait on threads that poll. Here are those that read; `changes` has those that would change.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};
use wasmtime_wasi::p2::DynInputStream;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHashValue, OpenFlags,
    PathFlags,
};

use super::super::{Grant as _, View, note_fuel, wasi};
use super::descriptor::{self, Descriptor, Dir};
use super::entries::Entries;
use super::record::Deed;
use super::resolve::{Kind, Refused, Resolver, code};
use super::stream::{CHUNK, FileStream, read_at};
use super::{Fs, changes, links};
use crate::model::{Guard, Verdict};

/// Bytes that the host keeps for an open file or directory beside what every handle is charged.
const HANDLE: u64 = 0;

/// The same for a stream over a directory: the buffer that its entries are read into.
const ENTRIES: u64 = 40 << 10;

/// The value of a function that can fail.
pub(super) type Answer<R> = wasmtime::Result<(Result<R, ErrorCode>,)>;

/// A handle that a guest names.
pub(super) type Handle = Resource<Descriptor>;

/// Adds all of them.
pub(super) fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let mut preopens = linker.instance(&wasi("filesystem/preopens"))?;
    preopens
        .func_wrap_async("get-directories", |store: StoreContextMut<'_, T>, (): ()| Box::new(directories(store)))?;
    let mut types = linker.instance(&wasi("filesystem/types"))?;
    types.resource("descriptor", ResourceType::host::<Descriptor>(), |mut store, rep| {
        store.data_mut().keeps_no_more(rep);
        store.data_mut().ctx().table.delete(Handle::new_own(rep))?;
        Ok(())
    })?;
    types.resource("directory-entry-stream", ResourceType::host::<Entries>(), |mut store, rep| {
        store.data_mut().keeps_no_more(rep);
        store.data_mut().ctx().table.delete(Resource::<Entries>::new_own(rep))?;
        Ok(())
    })?;
    link_paths(&mut types)?;
    link_handles(&mut types)?;
    changes::link(&mut types)
}

/// Those that take a path. They may have to go on on a thread of the call's own.
fn link_paths<T: View>(types: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    types.func_wrap_async("[method]descriptor.open-at", |store: StoreContextMut<'_, T>, params: OpenAt| {
        Box::new(open_at(store, params))
    })?;
    types.func_wrap_async("[method]descriptor.stat-at", |store: StoreContextMut<'_, T>, params: At| {
        Box::new(async move {
            let stat = look_at(store, Deed::Stat, params).await?;
            Ok((stat.map(|stat| descriptor::told(&stat)),)) as Answer<DescriptorStat>
        })
    })?;
    types.func_wrap_async("[method]descriptor.metadata-hash-at", |store: StoreContextMut<'_, T>, params: At| {
        Box::new(async move {
            let stat = look_at(store, Deed::Stat, params).await?;
            Ok((stat.map(|stat| descriptor::hash(&stat)),)) as Answer<MetadataHashValue>
        })
    })?;
    types
        .func_wrap_async("[method]descriptor.readlink-at", |store: StoreContextMut<'_, T>, params: (Handle, String)| {
            Box::new(readlink_at(store, params))
        })
}

/// Those that take a handle only. What it stands for is local, or the call has a thread of its own.
fn link_handles<T: View>(types: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    types.func_wrap("[method]descriptor.read", |mut store, (fd, len, offset): (Handle, u64, u64)| {
        note_fuel(&mut store);
        let table = store.data_mut().ctx().table;
        Ok((table.get(&fd)?.file().and_then(|file| {
            let len = usize::try_from(len).unwrap_or(CHUNK);
            let bytes = read_at(file, len, offset).map_err(code)?;
            let is_end = bytes.is_empty();
            Ok((bytes, is_end))
        }),)) as Answer<(Vec<u8>, bool)>
    })?;
    types.func_wrap("[method]descriptor.read-via-stream", |mut store, (fd, offset): (Handle, u64)| {
        let table = store.data_mut().ctx().table;
        let file = match table.get(&fd)? {
            Descriptor::File(file) => Arc::clone(file),
            Descriptor::Dir(_) => return Ok((Err(ErrorCode::IsDirectory),)),
        };
        let stream: DynInputStream = Box::new(FileStream::new(file, offset));
        let stream = table.push(stream)?;
        store.data_mut().keeps(stream.rep(), HANDLE)?;
        Ok((Ok(stream),)) as Answer<Resource<DynInputStream>>
    })?;
    types.func_wrap("[method]descriptor.read-directory", |mut store, (fd,): (Handle,)| {
        note_fuel(&mut store);
        let table = store.data_mut().ctx().table;
        let entries = table.get(&fd)?.dir().and_then(|dir| Entries::open(&dir.file));
        let entries = match entries {
            Ok(entries) => table.push(entries)?,
            Err(code) => return Ok((Err(code),)),
        };
        store.data_mut().keeps(entries.rep(), ENTRIES)?;
        Ok((Ok(entries),)) as Answer<Resource<Entries>>
    })?;
    types.func_wrap(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store, (stream,): (Resource<Entries>,)| {
            let entries = store.data_mut().ctx().table.get_mut(&stream)?;
            Ok((entries.next().transpose(),)) as Answer<Option<DirectoryEntry>>
        },
    )?;
    types.func_wrap("[method]descriptor.stat", |mut store, (fd,): (Handle,)| {
        let stat = store.data_mut().ctx().table.get(&fd)?.stat();
        Ok((stat.map(|stat| descriptor::told(&stat)),)) as Answer<DescriptorStat>
    })?;
    types.func_wrap("[method]descriptor.metadata-hash", |mut store, (fd,): (Handle,)| {
        let stat = store.data_mut().ctx().table.get(&fd)?.stat();
        Ok((stat.map(|stat| descriptor::hash(&stat)),)) as Answer<MetadataHashValue>
    })?;
    types.func_wrap("[method]descriptor.is-same-object", |mut store, (a, b): (Handle, Handle)| {
        let table = store.data_mut().ctx().table;
        let (a, b) = (table.get(&a)?.stat(), table.get(&b)?.stat());
        Ok((matches!((a, b), (Ok(a), Ok(b)) if descriptor::identity(&a) == descriptor::identity(&b)),))
    })?;
    types.func_wrap("[method]descriptor.get-type", |mut store, (fd,): (Handle,)| {
        Ok((Ok(match store.data_mut().ctx().table.get(&fd)? {
            Descriptor::File(_) => DescriptorType::RegularFile,
            Descriptor::Dir(_) => DescriptorType::Directory,
        }),)) as Answer<DescriptorType>
    })?;
    types.func_wrap("[method]descriptor.get-flags", |mut store, (fd,): (Handle,)| {
        store.data_mut().ctx().table.get(&fd)?;
        Ok((Ok(DescriptorFlags::READ),)) as Answer<DescriptorFlags>
    })?;
    // What was only read needs no flushing, and the disk is not the guest's to steer: these do nothing.
    for name in ["[method]descriptor.sync", "[method]descriptor.sync-data"] {
        types.func_wrap(name, |mut store, (fd,): (Handle,)| {
            store.data_mut().ctx().table.get(&fd)?;
            Ok((Ok(()),)) as Answer<()>
        })?;
    }
    types.func_wrap("[method]descriptor.advise", |mut store, (fd, _, _, _): (Handle, u64, u64, Advice)| {
        Ok((store.data_mut().ctx().table.get(&fd)?.file().map(drop),)) as Answer<()>
    })
}

/// Tries where the call runs, and where that could wait for a drive, once more on a thread of the call's own.
async fn patiently<T: View, R>(
    store: &mut StoreContextMut<'_, T>,
    attempt: impl Fn(bool) -> Result<R, Refused>,
) -> Result<R, Refused> {
    note_fuel(store);
    let thread = store.data_mut().opened().fs.thread();
    match attempt(thread.may_wait()) {
        Err(Refused::NeedsThread) => {
            let thread = thread.clone();
            thread.given().await;
            attempt(true)
        }
        done => done,
    }
}

async fn directories<T: View>(mut store: StoreContextMut<'_, T>) -> wasmtime::Result<(Vec<(Handle, String)>,)> {
    let call = &store.data_mut().opened().fs;
    let roots = call.roots().to_vec();
    if roots.iter().any(|root| root.may_stall()) && !call.thread().may_wait() {
        let thread = call.thread().clone();
        thread.given().await;
    }
    let state = store.data_mut();
    for root in &roots {
        state.opened().fs.trail().add(Fs::NAME, root.guest(), Verdict::Allowed, || None);
    }
    let open = |root: &Arc<_>| -> wasmtime::Result<_> {
        let root: &Arc<super::place::Root> = root;
        let handle = state.ctx().table.push(Descriptor::Dir(Dir::of_root(root)))?;
        state.keeps(handle.rep(), HANDLE)?;
        Ok((handle, root.guest().to_owned()))
    };
    Ok((roots.iter().map(open).collect::<wasmtime::Result<_>>()?,))
}

type OpenAt = (Handle, PathFlags, String, OpenFlags, DescriptorFlags);

async fn open_at<T: View>(mut store: StoreContextMut<'_, T>, params: OpenAt) -> Answer<Handle> {
    let (fd, path_flags, path, open_flags, flags) = params;
    let dir = match store.data_mut().ctx().table.get(&fd)?.dir() {
        Ok(dir) => dir.clone(),
        Err(code) => return Ok((Err(code),)),
    };
    let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
        | DescriptorFlags::DATA_INTEGRITY_SYNC
        | DescriptorFlags::REQUESTED_WRITE_SYNC;
    if flags.intersects(sync) {
        return Ok((Err(ErrorCode::Unsupported),));
    }
    let changes = open_flags.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE)
        || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
    if changes && Guard::ReadOnly.is_on() {
        return Ok((Err(store.data_mut().opened().fs.refuse_change(Deed::OpenToChange, &path)),));
    }
    let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
    let want_dir = open_flags.contains(OpenFlags::DIRECTORY);
    let opened = patiently(&mut store, |may_wait| {
        Resolver { root: &dir.root, base: &dir.file, may_wait }.open(&path, follow, want_dir)
    })
    .await;
    let opened = match opened {
        Ok((file, Kind::Directory)) => Descriptor::Dir(dir.inner(&path, file)),
        Ok((file, Kind::File)) => Descriptor::File(Arc::new(file)),
        Err(refused) => return Ok((Err(store.data_mut().opened().fs.refuse(Deed::Open, &path, refused)),)),
    };
    let handle = store.data_mut().ctx().table.push(opened)?;
    store.data_mut().keeps(handle.rep(), HANDLE)?;
    Ok((Ok(handle),))
}

type At = (Handle, PathFlags, String);

/// What is known of what a path names, whatever that is.
async fn look_at<T: View>(
    mut store: StoreContextMut<'_, T>,
    deed: Deed,
    (fd, flags, path): At,
) -> wasmtime::Result<Result<rustix::fs::Stat, ErrorCode>> {
    let dir = match store.data_mut().ctx().table.get(&fd)?.dir() {
        Ok(dir) => dir.clone(),
        Err(code) => return Ok(Err(code)),
    };
    let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
    let looked = patiently(&mut store, |may_wait| {
        Resolver { root: &dir.root, base: &dir.file, may_wait }.look(&path, follow, false).map(|(_, stat)| stat)
    })
    .await;
    Ok(looked.map_err(|refused| store.data_mut().opened().fs.refuse(deed, &path, refused)))
}

async fn readlink_at<T: View>(mut store: StoreContextMut<'_, T>, (fd, path): (Handle, String)) -> Answer<String> {
    let dir = match store.data_mut().ctx().table.get(&fd)?.dir() {
        Ok(dir) => dir.clone(),
        Err(code) => return Ok((Err(code),)),
    };
    let read = patiently(&mut store, |may_wait| links::read(&dir, &path, may_wait)).await;
    Ok((read.map_err(|refused| store.data_mut().opened().fs.refuse(Deed::ReadLink, &path, refused)),))
}
