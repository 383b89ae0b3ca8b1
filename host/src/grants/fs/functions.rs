//! belljar's implementation of `wasi:filesystem`. This module has the functions that read; `write_functions` has those
//! that would write.
//!
//! No function of wasmtime-wasi remains, because those resolve paths without the kernel's help, enter other mounts, and
//! block threads of the async runtime.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType};
use wasmtime_wasi::p2::DynInputStream;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHashValue, OpenFlags,
    PathFlags,
};

use super::call_state::FileOperation;
use super::descriptor::{self, Descriptor, Dir};
use super::directory_entries::DirectoryEntryStream;
use super::directory_records::{self, POSITIONS};
use super::handle::{Handle, WasiResult};
use super::name::{Fs, NAME};
use super::resolve::{FileKind, PathResolver, ResolveError, error_code};
use super::root::OpenRoot;
use super::stream::{CHUNK, FileStream, read_at};
use super::{symlinks, write_functions};
use crate::grants::grant::{HasCallState, record_fuel};
use crate::grants::wasi::wasi;
use crate::model::{DecisionKind, Guard};

/// The host memory of an open file or directory in bytes, beyond the fixed charge of every handle.
const HANDLE_BYTES: u64 = 0;

/// The host memory of a directory stream in bytes: the buffer for its entries.
const DIRECTORY_STREAM_BYTES: u64 = 40 << 10;

/// Adds all functions of `wasi:filesystem` to the linker.
pub(super) fn link<T: HasCallState<Fs>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let mut preopens = linker.instance(&wasi("filesystem/preopens"))?;
    preopens
        .func_wrap_async("get-directories", |store: StoreContextMut<'_, T>, (): ()| Box::new(get_directories(store)))?;
    let mut types = linker.instance(&wasi("filesystem/types"))?;
    types.resource("descriptor", ResourceType::host::<Descriptor>(), |mut store, rep| {
        store.data_mut().release_handle(rep);
        store.data_mut().ctx().table.delete(Handle::new_own(rep))?;
        Ok(())
    })?;
    types.resource("directory-entry-stream", ResourceType::host::<DirectoryEntryStream>(), |mut store, rep| {
        store.data_mut().release_handle(rep);
        store.data_mut().ctx().table.delete(Resource::<DirectoryEntryStream>::new_own(rep))?;
        Ok(())
    })?;
    link_paths(&mut types)?;
    link_handles(&mut types)?;
    write_functions::link(&mut types)
}

/// Adds the functions that take a path. They may have to continue on a dedicated thread.
fn link_paths<T: HasCallState<Fs>>(types: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    types.func_wrap_async("[method]descriptor.open-at", |store: StoreContextMut<'_, T>, params: OpenAtParams| {
        Box::new(open_at(store, params))
    })?;
    types.func_wrap_async("[method]descriptor.stat-at", |store: StoreContextMut<'_, T>, params: StatAtParams| {
        Box::new(async move {
            let stat = stat_at(store, FileOperation::Stat, params).await?;
            Ok((stat.map(|stat| descriptor::descriptor_stat(&stat)),)) as WasiResult<DescriptorStat>
        })
    })?;
    types.func_wrap_async(
        "[method]descriptor.metadata-hash-at",
        |store: StoreContextMut<'_, T>, params: StatAtParams| {
            Box::new(async move {
                let stat = stat_at(store, FileOperation::Stat, params).await?;
                Ok((stat.map(|stat| descriptor::metadata_hash(&stat)),)) as WasiResult<MetadataHashValue>
            })
        },
    )?;
    types
        .func_wrap_async("[method]descriptor.readlink-at", |store: StoreContextMut<'_, T>, params: (Handle, String)| {
            Box::new(readlink_at(store, params))
        })
}

/// Adds the functions that take handles only. They may block: each handle is on a local file system, or the call has a
/// dedicated thread.
fn link_handles<T: HasCallState<Fs>>(types: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    types.func_wrap("[method]descriptor.read", |mut store, (fd, len, offset): (Handle, u64, u64)| {
        record_fuel(&mut store);
        let table = store.data_mut().ctx().table;
        let opened = table.get(&fd)?;
        if let (Some(position), Ok(dir)) = (offset.checked_sub(POSITIONS), opened.dir()) {
            return Ok((directory_records::records(&dir.file, position, usize::try_from(len).unwrap_or(CHUNK)),));
        }
        Ok((opened.file().and_then(|file| {
            let len = usize::try_from(len).unwrap_or(CHUNK);
            let bytes = read_at(file, len, offset).map_err(error_code)?;
            let is_end = bytes.is_empty();
            Ok((bytes, is_end))
        }),)) as WasiResult<(Vec<u8>, bool)>
    })?;
    types.func_wrap("[method]descriptor.read-via-stream", |mut store, (fd, offset): (Handle, u64)| {
        let table = store.data_mut().ctx().table;
        let file = match table.get(&fd)? {
            Descriptor::File(file) => Arc::clone(file),
            Descriptor::Dir(_) => return Ok((Err(ErrorCode::IsDirectory),)),
        };
        let stream: DynInputStream = Box::new(FileStream::new(file, offset));
        let stream = table.push(stream)?;
        store.data_mut().charge_handle(stream.rep(), HANDLE_BYTES)?;
        Ok((Ok(stream),)) as WasiResult<Resource<DynInputStream>>
    })?;
    types.func_wrap("[method]descriptor.read-directory", |mut store, (fd,): (Handle,)| {
        record_fuel(&mut store);
        let table = store.data_mut().ctx().table;
        let entries = table.get(&fd)?.dir().and_then(|dir| DirectoryEntryStream::open(&dir.file));
        let entries = match entries {
            Ok(entries) => table.push(entries)?,
            Err(code) => return Ok((Err(code),)),
        };
        store.data_mut().charge_handle(entries.rep(), DIRECTORY_STREAM_BYTES)?;
        Ok((Ok(entries),)) as WasiResult<Resource<DirectoryEntryStream>>
    })?;
    types.func_wrap(
        "[method]directory-entry-stream.read-directory-entry",
        |mut store, (stream,): (Resource<DirectoryEntryStream>,)| {
            let entries = store.data_mut().ctx().table.get_mut(&stream)?;
            Ok((entries.next().transpose(),)) as WasiResult<Option<DirectoryEntry>>
        },
    )?;
    types.func_wrap("[method]descriptor.stat", |mut store, (fd,): (Handle,)| {
        let stat = store.data_mut().ctx().table.get(&fd)?.stat();
        Ok((stat.map(|stat| descriptor::descriptor_stat(&stat)),)) as WasiResult<DescriptorStat>
    })?;
    types.func_wrap("[method]descriptor.metadata-hash", |mut store, (fd,): (Handle,)| {
        let stat = store.data_mut().ctx().table.get(&fd)?.stat();
        Ok((stat.map(|stat| descriptor::metadata_hash(&stat)),)) as WasiResult<MetadataHashValue>
    })?;
    types.func_wrap("[method]descriptor.is-same-object", |mut store, (a, b): (Handle, Handle)| {
        let table = store.data_mut().ctx().table;
        let (a, b) = (table.get(&a)?.stat(), table.get(&b)?.stat());
        Ok((matches!((a, b), (Ok(a), Ok(b)) if descriptor::device_and_inode(&a) == descriptor::device_and_inode(&b)),))
    })?;
    types.func_wrap("[method]descriptor.get-type", |mut store, (fd,): (Handle,)| {
        Ok((Ok(match store.data_mut().ctx().table.get(&fd)? {
            Descriptor::File(_) => DescriptorType::RegularFile,
            Descriptor::Dir(_) => DescriptorType::Directory,
        }),)) as WasiResult<DescriptorType>
    })?;
    types.func_wrap("[method]descriptor.get-flags", |mut store, (fd,): (Handle,)| {
        store.data_mut().ctx().table.get(&fd)?;
        Ok((Ok(DescriptorFlags::READ),)) as WasiResult<DescriptorFlags>
    })?;
    // These do nothing: files that were only read need no flush, and a guest must not influence the disk.
    for name in ["[method]descriptor.sync", "[method]descriptor.sync-data"] {
        types.func_wrap(name, |mut store, (fd,): (Handle,)| {
            store.data_mut().ctx().table.get(&fd)?;
            Ok((Ok(()),)) as WasiResult<()>
        })?;
    }
    types.func_wrap("[method]descriptor.advise", |mut store, (fd, _, _, _): (Handle, u64, u64, Advice)| {
        Ok((store.data_mut().ctx().table.get(&fd)?.file().map(drop),)) as WasiResult<()>
    })
}

/// Runs `attempt` on the current thread, where it may not block. If it needs to block, runs it again on a dedicated
/// thread.
async fn retry_on_dedicated_thread<T: HasCallState<Fs>, R>(
    store: &mut StoreContextMut<'_, T>,
    attempt: impl Fn(bool) -> Result<R, ResolveError>,
) -> Result<R, ResolveError> {
    record_fuel(store);
    let thread = store.data_mut().call_state().thread();
    match attempt(thread.may_block()) {
        Err(ResolveError::NeedsThread) => {
            let thread = thread.clone();
            thread.request().await;
            attempt(true)
        }
        done => done,
    }
}

async fn get_directories<T: HasCallState<Fs>>(
    mut store: StoreContextMut<'_, T>,
) -> wasmtime::Result<(Vec<(Handle, String)>,)> {
    let call = &store.data_mut().call_state();
    let roots = call.roots().to_vec();
    if roots.iter().any(|root| root.may_stall()) && !call.thread().may_block() {
        let thread = call.thread().clone();
        thread.request().await;
    }
    let state = store.data_mut();
    for root in &roots {
        state.call_state().record().add_decision(NAME, root.guest(), DecisionKind::Allowed, || None);
    }
    let open = |root: &Arc<_>| -> wasmtime::Result<_> {
        let root: &Arc<OpenRoot> = root;
        let handle = state.ctx().table.push(Descriptor::Dir(Dir::of_root(root)))?;
        state.charge_handle(handle.rep(), HANDLE_BYTES)?;
        Ok((handle, root.guest().to_owned()))
    };
    Ok((roots.iter().map(open).collect::<wasmtime::Result<_>>()?,))
}

type OpenAtParams = (Handle, PathFlags, String, OpenFlags, DescriptorFlags);

async fn open_at<T: HasCallState<Fs>>(mut store: StoreContextMut<'_, T>, params: OpenAtParams) -> WasiResult<Handle> {
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
    let writes = open_flags.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE)
        || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
    if writes && Guard::ReadOnly.is_on() {
        return Ok((Err(store.data_mut().call_state().refuse_write(FileOperation::OpenForWriting, &path)),));
    }
    let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
    let want_dir = open_flags.contains(OpenFlags::DIRECTORY);
    let opened = retry_on_dedicated_thread(&mut store, |may_block| {
        PathResolver { root: &dir.root, base: &dir.file, may_block }.open(&path, follow, want_dir)
    })
    .await;
    let opened = match opened {
        Ok((file, FileKind::Directory)) => Descriptor::Dir(dir.child(&path, file)),
        Ok((file, FileKind::File)) => Descriptor::File(Arc::new(file)),
        Err(error) => return Ok((Err(store.data_mut().call_state().refuse(FileOperation::Open, &path, error)),)),
    };
    let handle = store.data_mut().ctx().table.push(opened)?;
    store.data_mut().charge_handle(handle.rep(), HANDLE_BYTES)?;
    Ok((Ok(handle),))
}

type StatAtParams = (Handle, PathFlags, String);

/// The metadata of the file of any kind at a path.
async fn stat_at<T: HasCallState<Fs>>(
    mut store: StoreContextMut<'_, T>,
    operation: FileOperation,
    (fd, flags, path): StatAtParams,
) -> wasmtime::Result<Result<rustix::fs::Stat, ErrorCode>> {
    let dir = match store.data_mut().ctx().table.get(&fd)?.dir() {
        Ok(dir) => dir.clone(),
        Err(code) => return Ok(Err(code)),
    };
    let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
    let result = retry_on_dedicated_thread(&mut store, |may_block| {
        PathResolver { root: &dir.root, base: &dir.file, may_block }.lookup(&path, follow, false).map(|(_, stat)| stat)
    })
    .await;
    Ok(result.map_err(|error| store.data_mut().call_state().refuse(operation, &path, error)))
}

async fn readlink_at<T: HasCallState<Fs>>(
    mut store: StoreContextMut<'_, T>,
    (fd, path): (Handle, String),
) -> WasiResult<String> {
    let dir = match store.data_mut().ctx().table.get(&fd)?.dir() {
        Ok(dir) => dir.clone(),
        Err(code) => return Ok((Err(code),)),
    };
    let read = retry_on_dedicated_thread(&mut store, |may_block| symlinks::read(&dir, &path, may_block)).await;
    Ok((read.map_err(|error| store.data_mut().call_state().refuse(FileOperation::ReadLink, &path, error)),))
}
