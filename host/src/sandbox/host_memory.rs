//! Host memory of a guest, charged to the memory of the call: handles, header fields, requests, bodies, bytes on their
//! way into a stream, poll lists.
//!
//! Every function of `wasi:http/types`, `wasi:http/outgoing-handler`, `wasi:io/streams` and `wasi:io/poll` passes
//! through here. The types implement wasmtime's generated traits, so a function that wasmtime adds does not compile
//! until its memory is accounted for. wasmtime's own implementation does the work. Components without grants pass
//! through here too: these interfaces are linked for all.

mod charges;
pub(super) mod http;
pub(super) mod io;

pub(super) use charges::{HostMemory, MAX_FIELDS};
pub(super) use http::HttpHost;
pub(super) use io::IoHost;
