//! Errors of the sandbox: it does not start, a component does not compile, or does not load.

use std::io;

use crate::grants::ConfigureError;
use crate::model::text;

/// The sandbox does not start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine lacks a resource that the engine needs.
    #[error(
        "cannot start the WebAssembly engine: {0:#}; each call reserves address space: set a smaller \"calls\" at the top of the configuration, or raise the limit on address space (ulimit -v)"
    )]
    Engine(wasmtime::Error),
    /// The host functions cannot be linked.
    #[error("cannot start the WebAssembly engine: {0:#}")]
    Linker(wasmtime::Error),
    /// The absence of grants cannot be configured.
    #[error("cannot start the WebAssembly engine: {0}")]
    Grants(#[from] ConfigureError),
    /// The epoch thread does not start.
    #[error("cannot start the epoch thread: {0}")]
    Epoch(io::Error),
    /// The slow pool does not start.
    #[error("cannot start threads for long calls: {0}")]
    SlowPool(io::Error),
}

/// A component cannot be loaded for a mount. Texts are sanitised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Exports or imports have other types than the interface.
    #[error("it does not fit the interface: {0}")]
    Unfit(String),
    /// The component does not compile.
    #[error("{0}")]
    NotCompiled(String),
    /// The compiled code does not load.
    #[error("its compiled code does not load: {0}")]
    Code(String),
    /// The component, shared with another mount, was unloaded meanwhile.
    #[error("its component was unloaded meanwhile")]
    Unloaded,
}

impl LoadError {
    /// The engine does not load compiled code.
    pub(super) fn code(error: &wasmtime::Error) -> Self {
        Self::Code(text::excerpt(&format!("{error:#}"), 300))
    }
}

/// The compiler has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The machine lacks a resource that the compiler needs.
    #[error("cannot start the compiler: {0}")]
    Start(String),
    /// The component is not valid. Sanitised.
    #[error("{0}")]
    Invalid(String),
}

/// The secret is not a valid signing key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub(super) String);
