//! The functions of `wasi:filesystem` that would write. Grants are read-only, so this module has no code that writes:
//! each function refuses, and adds the refusal to the call's record.

use wasmtime::component::{LinkerInstance, Resource};
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, NewTimestamp, PathFlags};

use super::call_state::FileOperation;
use super::descriptor::Descriptor;
use super::handle::{Handle, WasiResult};
use super::name::Fs;
use crate::grants::grant::HasCallState;

/// The target of a refused operation.
enum OperationTarget<'a> {
    /// A path below an open directory.
    Path(&'a str),
    /// An open file.
    File,
    /// An open file or directory.
    Any,
}

/// Refuses `operation`. Returns another error if the handle is of the wrong kind for this operation.
fn refuse<T: HasCallState<Fs>>(
    state: &mut T,
    fd: &Handle,
    operation: FileOperation,
    target: &OperationTarget<'_>,
) -> wasmtime::Result<ErrorCode> {
    let handle: &Descriptor = state.ctx().table.get(fd)?;
    let unfit = match target {
        OperationTarget::Path(_) if !handle.is_directory() => Some(ErrorCode::NotDirectory),
        OperationTarget::File if handle.is_directory() => Some(ErrorCode::BadDescriptor),
        OperationTarget::Path(_) | OperationTarget::File | OperationTarget::Any => None,
    };
    let path = match target {
        OperationTarget::Path(path) => path,
        OperationTarget::File => "an open file",
        OperationTarget::Any => "an open file or directory",
    };
    Ok(unfit.unwrap_or_else(|| state.call_state().refuse_write(operation, path)))
}

/// Adds these functions to the linker.
pub(super) fn link<T: HasCallState<Fs>>(types: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    for (name, operation) in [
        ("[method]descriptor.create-directory-at", FileOperation::CreateDirectory),
        ("[method]descriptor.remove-directory-at", FileOperation::RemoveDirectory),
        ("[method]descriptor.unlink-file-at", FileOperation::RemoveFile),
    ] {
        types.func_wrap(name, move |mut store, (fd, path): (Handle, String)| {
            Ok((Err(refuse(store.data_mut(), &fd, operation, &OperationTarget::Path(&path))?),)) as WasiResult<()>
        })?;
    }
    types.func_wrap(
        "[method]descriptor.rename-at",
        |mut store, (fd, path, to, _): (Handle, String, Handle, String)| {
            store.data_mut().ctx().table.get(&to)?;
            Ok((Err(refuse(store.data_mut(), &fd, FileOperation::Rename, &OperationTarget::Path(&path))?),))
                as WasiResult<()>
        },
    )?;
    types.func_wrap(
        "[method]descriptor.link-at",
        |mut store, (fd, _, path, to, _): (Handle, PathFlags, String, Handle, String)| {
            store.data_mut().ctx().table.get(&to)?;
            Ok((Err(refuse(store.data_mut(), &fd, FileOperation::Link, &OperationTarget::Path(&path))?),))
                as WasiResult<()>
        },
    )?;
    types.func_wrap("[method]descriptor.symlink-at", |mut store, (fd, _, path): (Handle, String, String)| {
        Ok((Err(refuse(store.data_mut(), &fd, FileOperation::Symlink, &OperationTarget::Path(&path))?),))
            as WasiResult<()>
    })?;
    types.func_wrap(
        "[method]descriptor.set-times-at",
        |mut store, (fd, _, path, _, _): (Handle, PathFlags, String, NewTimestamp, NewTimestamp)| {
            Ok((Err(refuse(store.data_mut(), &fd, FileOperation::SetTimes, &OperationTarget::Path(&path))?),))
                as WasiResult<()>
        },
    )?;
    types.func_wrap(
        "[method]descriptor.set-times",
        |mut store, (fd, _, _): (Handle, NewTimestamp, NewTimestamp)| {
            Ok((Err(refuse(store.data_mut(), &fd, FileOperation::SetTimes, &OperationTarget::Any)?),)) as WasiResult<()>
        },
    )?;
    types.func_wrap("[method]descriptor.set-size", |mut store, (fd, _): (Handle, u64)| {
        Ok((Err(refuse(store.data_mut(), &fd, FileOperation::SetSize, &OperationTarget::File)?),)) as WasiResult<()>
    })?;
    types.func_wrap("[method]descriptor.write", |mut store, (fd, _, _): (Handle, Vec<u8>, u64)| {
        Ok((Err(refuse(store.data_mut(), &fd, FileOperation::Write, &OperationTarget::File)?),)) as WasiResult<u64>
    })?;
    types.func_wrap("[method]descriptor.write-via-stream", |mut store, (fd, _): (Handle, u64)| {
        Ok((Err(refuse(store.data_mut(), &fd, FileOperation::Write, &OperationTarget::File)?),))
            as WasiResult<Resource<DynOutputStream>>
    })?;
    types.func_wrap("[method]descriptor.append-via-stream", |mut store, (fd,): (Handle,)| {
        Ok((Err(refuse(store.data_mut(), &fd, FileOperation::Write, &OperationTarget::File)?),))
            as WasiResult<Resource<DynOutputStream>>
    })
}
