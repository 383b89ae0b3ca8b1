//! Compiled code that is installed with belljar, so that the first start of its own providers compiles nothing.
//!
//! Nothing authenticates this code but its place: whoever can write there can replace belljar itself. So the file must
//! belong to root or to this user, and nobody else may be able to write it. The caller opens the directory, and checks
//! it in the same way.

use cap_std::fs::Dir;
use wasmtime::Engine;

use super::load::CompiledCode;
use crate::grants::is_writable_by_others;
use crate::model::Digest;

/// The installed code. Each file is named by the digest of its component.
pub(super) struct InstalledCode(Dir);

impl InstalledCode {
    pub(super) fn new(dir: Dir) -> Self {
        Self(dir)
    }

    /// The directory of the code.
    pub(super) fn directory(&self) -> &Dir {
        &self.0
    }

    fn name(digest: &Digest) -> String {
        format!("{}.cwasm", digest.hex())
    }

    /// The size of the component's code in bytes, if it is there.
    pub(super) fn len(&self, digest: &Digest) -> Option<u64> {
        Some(self.0.metadata(Self::name(digest)).ok()?.len())
    }

    /// The component's code. `None` if it was not installed, is for another processor or version, or others can write
    /// it.
    pub(super) fn load(&self, engine: &Engine, digest: &Digest) -> Option<CompiledCode> {
        let file = self.0.open(Self::name(digest)).ok()?;
        if !file.metadata().is_ok_and(|meta| meta.is_file() && !is_writable_by_others(&meta)) {
            tracing::warn!(
                %digest,
                "other users can write the compiled code that was installed with belljar; it is not used: run chmod go-w, or install belljar again"
            );
            return None;
        }
        CompiledCode::map(engine, file.into_std().into())
            .inspect_err(|error| tracing::info!(%digest, "the installed code does not fit this machine: {error:#}"))
            .ok()
    }
}
