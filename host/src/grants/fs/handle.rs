//! Type aliases of the host functions of `wasi:filesystem`.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::descriptor::Descriptor;

/// The result of a host function: the outer error ends the call, the inner one goes to the guest.
pub(super) type WasiResult<R> = wasmtime::Result<(Result<R, ErrorCode>,)>;

/// A guest's handle of an open file or directory.
pub(super) type Handle = Resource<Descriptor>;
