//! The functions of `wasi:filesystem` that would change something. Grants are for reading, so there is no code here that
//! changes: each of them refuses, and the refusal is on record.

use wasmtime::component::{LinkerInstance, Resource};
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, NewTimestamp, PathFlags};

use super::super::View;
use super::descriptor::Descriptor;
use super::functions::{Answer, Handle};
use super::record::Deed;

/// What a deed is done to.
enum To<'a> {
    /// What lies at a path below a directory.
    Path(&'a str),
    /// An open file.
    File,
    /// An open file or directory.
    Any,
}

/// Refuses `deed`, unless the handle is of the wrong kind for it.
fn refuse<T: View>(state: &mut T, fd: &Handle, deed: Deed, to: &To<'_>) -> wasmtime::Result<ErrorCode> {
    let handle: &Descriptor = state.ctx().table.get(fd)?;
    let fits = match to {
        To::Path(_) => handle.dir().map(drop),
        To::File => handle.file().map(drop),
        To::Any => Ok(()),
    };
    let path = match to {
        To::Path(path) => path,
        To::File | To::Any => "what it has opened",
    };
    Ok(fits.err().unwrap_or_else(|| state.opened().fs.refuse_change(deed, path)))
}

/// Adds all of them.
pub(super) fn link<T: View>(types: &mut LinkerInstance<'_, T>) -> wasmtime::Result<()> {
    for (name, deed) in [
        ("[method]descriptor.create-directory-at", Deed::CreateDirectory),
        ("[method]descriptor.remove-directory-at", Deed::RemoveDirectory),
        ("[method]descriptor.unlink-file-at", Deed::RemoveFile),
    ] {
        types.func_wrap(name, move |mut store, (fd, path): (Handle, String)| {
            Ok((Err(refuse(store.data_mut(), &fd, deed, &To::Path(&path))?),)) as Answer<()>
        })?;
    }
    types.func_wrap(
        "[method]descriptor.rename-at",
        |mut store, (fd, path, to, _): (Handle, String, Handle, String)| {
            store.data_mut().ctx().table.get(&to)?;
            Ok((Err(refuse(store.data_mut(), &fd, Deed::Rename, &To::Path(&path))?),)) as Answer<()>
        },
    )?;
    types.func_wrap(
        "[method]descriptor.link-at",
        |mut store, (fd, _, path, to, _): (Handle, PathFlags, String, Handle, String)| {
            store.data_mut().ctx().table.get(&to)?;
            Ok((Err(refuse(store.data_mut(), &fd, Deed::Link, &To::Path(&path))?),)) as Answer<()>
        },
    )?;
    types.func_wrap("[method]descriptor.symlink-at", |mut store, (fd, _, path): (Handle, String, String)| {
        Ok((Err(refuse(store.data_mut(), &fd, Deed::LinkSymbolically, &To::Path(&path))?),)) as Answer<()>
    })?;
    types.func_wrap(
        "[method]descriptor.set-times-at",
        |mut store, (fd, _, path, _, _): (Handle, PathFlags, String, NewTimestamp, NewTimestamp)| {
            Ok((Err(refuse(store.data_mut(), &fd, Deed::SetTimes, &To::Path(&path))?),)) as Answer<()>
        },
    )?;
    types.func_wrap(
        "[method]descriptor.set-times",
        |mut store, (fd, _, _): (Handle, NewTimestamp, NewTimestamp)| {
            Ok((Err(refuse(store.data_mut(), &fd, Deed::SetTimes, &To::Any)?),)) as Answer<()>
        },
    )?;
    types.func_wrap("[method]descriptor.set-size", |mut store, (fd, _): (Handle, u64)| {
        Ok((Err(refuse(store.data_mut(), &fd, Deed::SetSize, &To::File)?),)) as Answer<()>
    })?;
    types.func_wrap("[method]descriptor.write", |mut store, (fd, _, _): (Handle, Vec<u8>, u64)| {
        Ok((Err(refuse(store.data_mut(), &fd, Deed::Write, &To::File)?),)) as Answer<u64>
    })?;
    types.func_wrap("[method]descriptor.write-via-stream", |mut store, (fd, _): (Handle, u64)| {
        Ok((Err(refuse(store.data_mut(), &fd, Deed::Write, &To::File)?),)) as Answer<Resource<DynOutputStream>>
    })?;
    types.func_wrap("[method]descriptor.append-via-stream", |mut store, (fd,): (Handle,)| {
        Ok((Err(refuse(store.data_mut(), &fd, Deed::Write, &To::File)?),)) as Answer<Resource<DynOutputStream>>
    })
}
