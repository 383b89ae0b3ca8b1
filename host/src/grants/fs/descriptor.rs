//! The values behind a guest's file handles: an open file, an open directory with the granted directory above it, or a
//! file or directory in memory.
//!
//! A descriptor on a file system that may stall exists only in a call with a dedicated thread. Therefore operations on
//! descriptors may block; see [`super::resolve`].

use std::fs::File;
use std::sync::Arc;

use rustix::fs::fstat;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::memory_file::{self, OpenMemoryFile};
use super::metadata::DescriptorMetadata;
use super::resolve::error_code;
use super::root::OpenRoot;
use crate::grants::memory_directory::MemoryDirectory;

/// The longest remembered path of an open directory, in bytes. For directories with a longer path, `readlink` refuses
/// targets with `..`.
const MAX_PATH_BYTES: usize = 512;

/// An open file or directory of a guest.
pub(super) enum Descriptor {
    File(Arc<File>),
    Dir(Dir),
    MemoryFile(OpenMemoryFile),
    MemoryDir(Arc<dyn MemoryDirectory>),
}

/// An open directory.
#[derive(Clone)]
pub(super) struct Dir {
    pub(super) file: Arc<File>,
    pub(super) root: Arc<OpenRoot>,
    /// The path from the root, made of the guest's own paths. `None` if it is longer than [`MAX_PATH_BYTES`].
    pub(super) path: Option<Box<str>>,
}

impl Dir {
    /// The descriptor of the granted directory itself.
    pub(super) fn of_root(root: &Arc<OpenRoot>) -> Self {
        Self { file: Arc::clone(root.dir()), root: Arc::clone(root), path: Some("".into()) }
    }

    /// The descriptor of the directory that was opened at `path` below this one.
    pub(super) fn child(&self, path: &str, file: File) -> Self {
        Self { file: Arc::new(file), root: Arc::clone(&self.root), path: self.path_from_root(path).map(Into::into) }
    }

    /// The path from the root to `path` below this directory. `None` if it is too long.
    pub(super) fn path_from_root(&self, path: &str) -> Option<String> {
        let below = self.path.as_deref()?;
        let joined = if below.is_empty() { path.to_owned() } else { format!("{below}/{path}") };
        (joined.len() <= MAX_PATH_BYTES).then_some(joined)
    }
}

impl Descriptor {
    /// True for a directory of any sort.
    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Dir(_) | Self::MemoryDir(_))
    }

    /// The host memory that the guest's handle keeps, in bytes, beyond the fixed charge of every handle.
    pub(super) fn host_memory(&self) -> u64 {
        match self {
            Self::MemoryFile(file) => file.size(),
            Self::File(_) | Self::Dir(_) | Self::MemoryDir(_) => 0,
        }
    }

    pub(super) fn metadata(&self) -> Result<DescriptorMetadata, ErrorCode> {
        match self {
            Self::File(file) | Self::Dir(Dir { file, .. }) => {
                fstat(file).map(|stat| DescriptorMetadata::of(&stat)).map_err(error_code)
            }
            Self::MemoryFile(file) => Ok(file.metadata()),
            Self::MemoryDir(dir) => Ok(memory_file::directory_metadata(&**dir)),
        }
    }
}
