//! Names of the linked WASI interfaces.

/// The version of the linked WASI interfaces. wasmtime matches guests that import an older 0.2 version to it.
pub(crate) const WASI: &str = "@0.2.12";

/// The full name of a linked WASI interface.
pub(crate) fn wasi(interface: &str) -> String {
    format!("wasi:{interface}{WASI}")
}
