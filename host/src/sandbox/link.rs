//! The linker: wasmtime's host functions, some of them replaced by belljar's. Replaced are functions that keep host
//! memory and functions that need a grant.

use wasmtime::Engine;
use wasmtime::component::Linker;

use super::store_data::StoreData;
use super::{handles, host_memory};
use crate::{grants, interfaces};

/// Links every function that a component can import.
///
/// # Errors
/// If the engine refuses a definition.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<StoreData>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    // The replacements charge host memory to the call and enforce grants.
    linker.allow_shadowing(true);
    host_memory::http::link(&mut linker, StoreData::http_host)?;
    host_memory::io::link(&mut linker, StoreData::io_host)?;
    handles::link(&mut linker)?;
    grants::link(&mut linker)?;
    interfaces::progress::link(&mut linker)?;
    linker.allow_shadowing(false);
    Ok(linker)
}
