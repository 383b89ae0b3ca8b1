//! Loads compiled code. It becomes native code of this process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{SealFlags, fcntl_add_seals};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::sandbox::memory_file::memory_file;

/// A loaded component, and the file with its compiled code.
pub(in crate::sandbox) struct CompiledCode {
    pub(in crate::sandbox) component: Component,
    pub(in crate::sandbox) file: OwnedFd,
}

impl CompiledCode {
    /// Maps code from an authenticated, installed or lent file. Opens the descriptor, not the name, which may lead to
    /// another file now.
    pub(in crate::sandbox) fn map(engine: &Engine, file: OwnedFd) -> wasmtime::Result<Self> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        #[expect(
            unsafe_code,
            reason = "compiled code of belljar, authenticated, in a directory that only its user writes"
        )]
        // SAFETY: `deserialize_file` requires bytes from `precompile_component` that do not change while mapped. The MAC,
        // the signature, or the place beside this program proves the first. The second holds because cache files are
        // written under a temporary name and then only renamed or removed, in a directory private to this user. Nobody but
        // root and this user can change installed files, and package managers replace them. A worker gets the same files
        // from the front, or sealed memory.
        let component = unsafe { Component::deserialize_file(engine, path) }?;
        Ok(Self { component, file })
    }
}

/// Loads code that the compiler process has just made, from a copy.
pub(in crate::sandbox) fn copied(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(unsafe_code, reason = "compiled code of belljar, from the compiler process that it started")]
    // SAFETY: `deserialize` requires bytes from `precompile_component`. The compiler process made them with it, and sent them
    // through a pipe that no other process has.
    unsafe {
        Component::deserialize(engine, code)
    }
}

/// Puts code into sealed memory, for workers to map.
pub(in crate::sandbox) fn sealed(code: &[u8]) -> io::Result<OwnedFd> {
    let file = memory_file(c"compiled code")?;
    let mut rest = code;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}
