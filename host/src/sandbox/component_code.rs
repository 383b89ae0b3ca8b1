//! The compiled code of a component. A sandbox with workers maps it only for calls that run here. So the front maps no code of
//! a mount that runs in a worker, and holds a descriptor of the file for the worker.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::compile::CompiledCode;
use super::error::LoadError;
use super::store_data::StoreData;
use crate::interfaces::Exports;
use crate::model::text;

/// The linked exports of mapped code.
type Linked = Arc<Exports<StoreData>>;

/// The compiled code of a component.
pub(super) enum ComponentCode {
    /// Mapped. Its file is closed, because it would be a descriptor for each component.
    Mapped(Linked),
    /// In an authenticated file, or in sealed memory.
    InFile(CodeFile),
}

/// Compiled code in a file. It is mapped when a call is to run here.
pub(super) struct CodeFile {
    file: Arc<OwnedFd>,
    /// Empty until it is mapped.
    exports: OnceLock<Linked>,
}

impl ComponentCode {
    /// Code in this file.
    pub(super) fn in_file(file: OwnedFd) -> Self {
        Self::InFile(CodeFile { file: Arc::new(file), exports: OnceLock::new() })
    }

    /// The file, for workers. `None` if all calls run here.
    pub(super) fn file(&self) -> Option<&Arc<OwnedFd>> {
        match self {
            Self::Mapped(_) => None,
            Self::InFile(code) => Some(&code.file),
        }
    }

    /// The exports. Maps and links the code if it is not mapped yet.
    ///
    /// # Errors
    /// If the engine does not load the code, or it does not fit the interface.
    pub(super) fn exports(&self, engine: &Engine, linker: &Linker<StoreData>) -> Result<Linked, LoadError> {
        let code = match self {
            Self::Mapped(exports) => return Ok(Arc::clone(exports)),
            Self::InFile(code) => code,
        };
        if let Some(exports) = code.exports.get() {
            return Ok(Arc::clone(exports));
        }
        // An error may pass, such as a lack of descriptors, so it is not kept.
        let exports = code.map(engine, linker)?;
        Ok(Arc::clone(code.exports.get_or_init(|| exports)))
    }
}

impl CodeFile {
    fn map(&self, engine: &Engine, linker: &Linker<StoreData>) -> Result<Linked, LoadError> {
        let file = self.file.try_clone().map_err(wasmtime::Error::from);
        let code = file.and_then(|file| CompiledCode::map(engine, file)).map_err(|error| LoadError::code(&error))?;
        link(linker, &code.component)
    }
}

/// Links a component with the functions that it imports, and finds its exports.
///
/// # Errors
/// If it does not fit the interface.
pub(super) fn link(linker: &Linker<StoreData>, component: &Component) -> Result<Linked, LoadError> {
    let unfit = |error: wasmtime::Error| LoadError::Unfit(text::excerpt(&format!("{error:#}"), 400));
    let linked = linker.instantiate_pre(component).map_err(unfit)?;
    Exports::new(linked).map(Arc::new).map_err(unfit)
}
