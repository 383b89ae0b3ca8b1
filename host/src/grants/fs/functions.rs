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
use super::descriptor::{Descriptor, Dir};
use super::directory_entries::DirectoryEntryStream;
use super::directory_records::{self, POSITIONS};
use super::handle::{Handle, WasiResult};
use super::memory;
use super::memory_file::MemoryStream;
use super::metadata::DescriptorMetadata;
use super::name::{Fs, NAME};
use super::on_thread::retry_on_dedicated_thread;
use super::resolve::{FileKind, PathResolver, error_code};
use super::root::OpenRoot;
use super::stream::{CHUNK, FileStream, read_at};
use super::{symlinks, write_functions};
use crate::grants::grant::{HasCallState, record_fuel};
use crate::grants::memory_directory::MemoryDirectory;
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
            Ok((stat.map(|found| found.stat),)) as WasiResult<DescriptorStat>
        })
    })?;
    types.func_wrap_async(
        "[method]descriptor.metadata-hash-at",
        |store: StoreContextMut<'_, T>, params: StatAtParams| {
            Box::new(async move {
                let stat = stat_at(store, FileOperation::Stat, params).await?;
                Ok((stat.map(|found| found.hash()),)) as WasiResult<MetadataHashValue>
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
        let length = usize::try_from(len).unwrap_or(CHUNK);
        let position = offset.checked_sub(POSITIONS);
        let read = match (store.data_mut().ctx().table.get(&fd)?, position) {
            (Descriptor::Dir(dir), Some(position)) => directory_records::records(&dir.file, position, length),
            (Descriptor::MemoryDir(dir), Some(position)) => memory::records(&**dir, position, length),
            (Descriptor::Dir(_) | Descriptor::MemoryDir(_), None) => Err(ErrorCode::BadDescriptor),
            (Descriptor::File(file), _) => read_at(file, length, offset).map_err(error_code).map(with_end),
            (Descriptor::MemoryFile(file), _) => Ok(with_end(file.read(len, offset).to_vec())),
        };
        Ok((read,)) as WasiResult<(Vec<u8>, bool)>
    })?;
    types.func_wrap("[method]descriptor.read-via-stream", |mut store, (fd, offset): (Handle, u64)| {
        let table = store.data_mut().ctx().table;
        let (stream, size): (DynInputStream, u64) = match table.get(&fd)? {
            Descriptor::File(file) => (Box::new(FileStream::new(Arc::clone(file), offset)), HANDLE_BYTES),
            Descriptor::MemoryFile(file) => {
                (Box::new(MemoryStream { file: file.clone(), position: offset }), file.size())
            }
            Descriptor::Dir(_) | Descriptor::MemoryDir(_) => return Ok((Err(ErrorCode::IsDirectory),)),
        };
        let stream = table.push(stream)?;
        store.data_mut().charge_handle(stream.rep(), size)?;
        Ok((Ok(stream),)) as WasiResult<Resource<DynInputStream>>
    })?;
    types.func_wrap("[method]descriptor.read-directory", |mut store, (fd,): (Handle,)| {
        record_fuel(&mut store);
        let table = store.data_mut().ctx().table;
        let entries = match table.get(&fd)? {
            Descriptor::Dir(dir) => DirectoryEntryStream::open(&dir.file),
            Descriptor::MemoryDir(dir) => Ok(DirectoryEntryStream::Memory(dir.names().into_iter())),
            Descriptor::File(_) | Descriptor::MemoryFile(_) => Err(ErrorCode::NotDirectory),
        };
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
        let stat = store.data_mut().ctx().table.get(&fd)?.metadata();
        Ok((stat.map(|found| found.stat),)) as WasiResult<DescriptorStat>
    })?;
    types.func_wrap("[method]descriptor.metadata-hash", |mut store, (fd,): (Handle,)| {
        let stat = store.data_mut().ctx().table.get(&fd)?.metadata();
        Ok((stat.map(|found| found.hash()),)) as WasiResult<MetadataHashValue>
    })?;
    types.func_wrap("[method]descriptor.is-same-object", |mut store, (a, b): (Handle, Handle)| {
        let table = store.data_mut().ctx().table;
        let (a, b) = (table.get(&a)?.metadata(), table.get(&b)?.metadata());
        Ok((matches!((a, b), (Ok(a), Ok(b)) if a.identity == b.identity),))
    })?;
    types.func_wrap("[method]descriptor.get-type", |mut store, (fd,): (Handle,)| {
        Ok((Ok(match store.data_mut().ctx().table.get(&fd)?.is_directory() {
            true => DescriptorType::Directory,
            false => DescriptorType::RegularFile,
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
        Ok((match store.data_mut().ctx().table.get(&fd)?.is_directory() {
            true => Err(ErrorCode::BadDescriptor),
            false => Ok(()),
        },)) as WasiResult<()>
    })
}

/// The bytes of a read, and true if the file has no more.
fn with_end(bytes: Vec<u8>) -> (Vec<u8>, bool) {
    let is_end = bytes.is_empty();
    (bytes, is_end)
}

async fn get_directories<T: HasCallState<Fs>>(
    mut store: StoreContextMut<'_, T>,
) -> wasmtime::Result<(Vec<(Handle, String)>,)> {
    let call = &store.data_mut().call_state();
    let (roots, memory) = (call.roots().to_vec(), call.memory().to_vec());
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
    let mut directories = roots.iter().map(open).collect::<wasmtime::Result<Vec<_>>>()?;
    for dir in memory {
        state.call_state().record().add_decision(dir.kind(), dir.guest(), DecisionKind::Allowed, || None);
        let guest = dir.guest().to_owned();
        let handle = state.ctx().table.push(Descriptor::MemoryDir(dir))?;
        state.charge_handle(handle.rep(), HANDLE_BYTES)?;
        directories.push((handle, guest));
    }
    Ok((directories,))
}

/// A directory that a guest has opened.
enum OpenedDir {
    Kernel(Dir),
    Memory(Arc<dyn MemoryDirectory>),
}

/// The directory behind a handle, or the error of operations that need one.
fn directory<T: HasCallState<Fs>>(
    store: &mut StoreContextMut<'_, T>,
    fd: &Handle,
) -> wasmtime::Result<Result<OpenedDir, ErrorCode>> {
    Ok(match store.data_mut().ctx().table.get(fd)? {
        Descriptor::Dir(dir) => Ok(OpenedDir::Kernel(dir.clone())),
        Descriptor::MemoryDir(dir) => Ok(OpenedDir::Memory(Arc::clone(dir))),
        Descriptor::File(_) | Descriptor::MemoryFile(_) => Err(ErrorCode::NotDirectory),
    })
}

type OpenAtParams = (Handle, PathFlags, String, OpenFlags, DescriptorFlags);

async fn open_at<T: HasCallState<Fs>>(mut store: StoreContextMut<'_, T>, params: OpenAtParams) -> WasiResult<Handle> {
    let (fd, path_flags, path, open_flags, flags) = params;
    let dir = match directory(&mut store, &fd)? {
        Ok(dir) => dir,
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
    let dir = match dir {
        OpenedDir::Kernel(dir) => dir,
        OpenedDir::Memory(dir) => {
            let opened = memory::open_at(&mut store, &dir, FileOperation::Open, &path).await;
            let opened = opened.and_then(|found| match want_dir && !found.is_directory() {
                true => Err(ErrorCode::NotDirectory),
                false => Ok(found),
            });
            return match opened {
                Ok(opened) => Ok((Ok(push(&mut store, opened)?),)),
                Err(code) => Ok((Err(code),)),
            };
        }
    };
    let opened = retry_on_dedicated_thread(&mut store, |may_block| {
        PathResolver { root: &dir.root, base: &dir.file, may_block }.open(&path, follow, want_dir)
    })
    .await;
    let opened = match opened {
        Ok((file, FileKind::Directory)) => Descriptor::Dir(dir.child(&path, file)),
        Ok((file, FileKind::File)) => Descriptor::File(Arc::new(file)),
        Err(error) => return Ok((Err(store.data_mut().call_state().refuse(FileOperation::Open, &path, error)),)),
    };
    Ok((Ok(push(&mut store, opened)?),))
}

/// Makes a handle, and charges its memory to the call.
fn push<T: HasCallState<Fs>>(store: &mut StoreContextMut<'_, T>, opened: Descriptor) -> wasmtime::Result<Handle> {
    let bytes = HANDLE_BYTES + opened.host_memory();
    let handle = store.data_mut().ctx().table.push(opened)?;
    store.data_mut().charge_handle(handle.rep(), bytes)?;
    Ok(handle)
}

type StatAtParams = (Handle, PathFlags, String);

/// The metadata of the file of any kind at a path.
async fn stat_at<T: HasCallState<Fs>>(
    mut store: StoreContextMut<'_, T>,
    operation: FileOperation,
    (fd, flags, path): StatAtParams,
) -> wasmtime::Result<Result<DescriptorMetadata, ErrorCode>> {
    let dir = match directory(&mut store, &fd)? {
        Ok(OpenedDir::Kernel(dir)) => dir,
        Ok(OpenedDir::Memory(dir)) => {
            let found = memory::open_at(&mut store, &dir, operation, &path).await;
            return Ok(found.and_then(|found| found.metadata()));
        }
        Err(code) => return Ok(Err(code)),
    };
    let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
    let result = retry_on_dedicated_thread(&mut store, |may_block| {
        PathResolver { root: &dir.root, base: &dir.file, may_block }.lookup(&path, follow, false).map(|(_, stat)| stat)
    })
    .await;
    let result = result.map(|stat| DescriptorMetadata::of(&stat));
    Ok(result.map_err(|error| store.data_mut().call_state().refuse(operation, &path, error)))
}

async fn readlink_at<T: HasCallState<Fs>>(
    mut store: StoreContextMut<'_, T>,
    (fd, path): (Handle, String),
) -> WasiResult<String> {
    let dir = match directory(&mut store, &fd)? {
        Ok(OpenedDir::Kernel(dir)) => dir,
        Ok(OpenedDir::Memory(dir)) => {
            // There are no links: a file, a refusal, or nothing.
            let found = memory::open_at(&mut store, &dir, FileOperation::ReadLink, &path).await;
            return Ok((found.and(Err(ErrorCode::Invalid)),));
        }
        Err(code) => return Ok((Err(code),)),
    };
    let read = retry_on_dedicated_thread(&mut store, |may_block| symlinks::read(&dir, &path, may_block)).await;
    Ok((read.map_err(|error| store.data_mut().call_state().refuse(FileOperation::ReadLink, &path, error)),))
}
