//! Loads compiled code. It becomes native code of this process.

use std::os::fd::AsRawFd;

use cap_std::fs::File;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Maps code from an authenticated or installed file. Opens the descriptor, not the name, which may lead to another file now.
pub(super) fn map(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    #[expect(unsafe_code, reason = "compiled code of belljar, authenticated, in a directory that only its user writes")]
    // SAFETY: `deserialize_file` requires bytes from `precompile_component` that do not change while mapped. The MAC, the
    // signature, or the place beside this program proves the first. The second holds because cache files are written
    // under a temporary name and then only renamed or removed, in a directory private to this user. Nobody but root and
    // this user can change installed files, and package managers replace them.
    unsafe {
        Component::deserialize_file(engine, path)
    }
}

/// Loads code that the compiler process has just made, without a cache.
pub(in crate::sandbox) fn load_fresh(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(unsafe_code, reason = "compiled code from belljar's own compiler process")]
    // SAFETY: `deserialize` requires bytes from `precompile_component`; belljar's own compiler process made these.
    unsafe {
        Component::deserialize(engine, code)
    }
}
