//! Runs guests: every call gets a fresh instance, limited by a permit and dropped at the end of the call.
//!
//! Inputs and outputs are plain data ([`CallSpec`], [`Outcome`]) and the permit. No handle, closure or wasmtime type
//! crosses this boundary, so an [`Executor`] may be another process.
//!
//! Must not know: MCP, catalogs, URIs.
//!
//! A call requires a permit, which only admission creates:
//!
//! ```
//! use belljar::grants::CallRecord;
//! use belljar::limits::Permit;
//! use belljar::sandbox::{CallSpec, Executor, Outcome};
//!
//! async fn run(executor: &Executor, spec: CallSpec, permit: Permit) -> Outcome {
//!     executor.execute(spec, permit, &CallRecord::default()).await
//! }
//! ```
//!
//! A permit is good for one call:
//!
//! ```compile_fail,E0382
//! use belljar::grants::CallRecord;
//! use belljar::limits::Permit;
//! use belljar::sandbox::{CallSpec, Executor, Outcome};
//!
//! async fn run_twice(executor: &Executor, spec: CallSpec, permit: Permit) -> Outcome {
//!     executor.execute(spec.clone(), permit, &CallRecord::default()).await;
//!     executor.execute(spec, permit, &CallRecord::default()).await
//! }
//! ```
//!
//! A call without a permit does not compile:
//!
//! ```compile_fail,E0061
//! use belljar::grants::CallRecord;
//! use belljar::sandbox::{CallSpec, Executor, Outcome};
//!
//! async fn run(executor: &Executor, spec: CallSpec) -> Outcome {
//!     executor.execute(spec, &CallRecord::default()).await
//! }
//! ```

mod call;
mod call_runner;
mod compile;
mod compile_progress;
mod component;
mod component_code;
mod descriptors;
mod engine;
mod error;
mod executor;
mod handles;
mod host_memory;
mod huge_pages;
mod link;
mod loaded_mount;
mod local;
mod memory_file;
mod meter;
mod mount_id;
mod output;
mod principal_cache;
mod principal_mounts;
mod spare;
mod spec;
mod store_data;
mod worker;

pub use compile::{CodeCacheConfig, Compiler, NotCompiled, Signatures, compile, read_capped};
pub use compile_progress::COMPILING;
pub use component::{NotAProvider, Profile};
pub use engine::Processors;
pub use error::{CompileError, KeyError, LoadError, SandboxError};
pub use executor::Executor;
pub use huge_pages::allow_huge_pages;
pub use loaded_mount::LoadedMount;
pub use local::{Place, Sandbox, SandboxOptions};
pub use mount_id::MountId;
pub use spec::{CallSpec, Outcome};
#[cfg(feature = "unguarded")]
pub use worker::attempts::take_over_worker;
pub use worker::fuzzing as worker_fuzzing;
pub use worker::serve::{WorkerEnd, WorkerFiles, serve_worker};
pub use worker::starter::{WorkerProcess, WorkerSettings, WorkerStarter};
