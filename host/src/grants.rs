//! The grants that an operator can give a mount. Each kind of grant has one folder. `grants/list.rs` lists all kinds.
//!
//! A grant has three steps:
//!
//! 1. [`Grant::link`] runs once per engine and adds the kind's host functions.
//! 2. [`Grant::configure`] runs once per mount and turns the configuration into handles, for example a path into a
//!    directory handle. Only this step uses the ambient authority of the process.
//! 3. [`Grant::open`] runs once per call and gives the call its handles.
//!
//! A grant adds each decision of a call to the call's record. Host functions of grants that a mount lacks are linked
//! too, and refuse. Therefore every WASI program can be instantiated.
//!
//! # A new kind
//!
//! 1. Make the folder `grants/NAME/` and its `grants/NAME.rs`. `kind.rs` implements [`Grant`], `editor.rs` implements
//!    [`GrantEditor`].
//! 2. Declare the module in this file. Add the module and the kind to `grants/list.rs`: one name in `use`, one line in
//!    `grants!`.
//! 3. If the kind has host functions of its own, add them in [`Grant::link`] and put their WIT into the folder. List
//!    the interface and the start of its version in [`Grant::IMPORTS`]: only then may a component import it.
//! 4. In the host function, add each decision with [`CallRecord::add_decision`]. Give each refusal the cure that
//!    [`GrantSuggestion::cure`] writes.
//! 5. Write a guest into `tests/guests/NAME/`. The next build adds it to `Cargo.lock`.
//! 6. Write `tests/integration/grants/NAME.rs`, and declare it in `tests/integration/grants.rs`. Test three mounts: one with the grant,
//!    one without it, and one whose component does not import it.
//! 7. Add the kind to the two tables of `docs/guide/providers.md` that list the grants and the keys of a declaration.
//!
//! The configuration, the command line, consent, the audit record and the fuzz targets read the list, so they need no
//! change. `sandbox` changes only for a kind like `http`, which replaces a wasmtime-wasi function that takes a hook
//! from the store.

mod ambient;
mod broker;
mod call_record;
mod declared_needs;
mod dedicated_thread;
pub mod drive_timeout;
pub mod edit;
mod editor;
pub mod env;
mod file_exchange;
mod frames;
mod front;
pub mod fs;
mod grant;
mod handover;
mod home;
pub mod http;
mod kind_error;
mod list;
mod memory_directory;
pub mod mountinfo;
mod need;
pub mod network;
mod network_handover;
mod outside;
pub mod postgres;
pub mod secrets;
mod sockets;
pub mod system;
pub mod tcp;
mod traffic;
mod trusted_owner;
pub mod view;
mod wasi;

pub use ambient::Ambient;
pub use broker::{Broker, Serving};
pub use call_record::{CallRecord, UnfinishedCall};
pub use declared_needs::{Needs, NeedsError, SECTION};
pub use dedicated_thread::DedicatedThread;
pub use editor::{GrantEditor, GrantSuggestion};
pub use frames::FrameError;
pub use front::{Front, FrontRequest, Opening, RecordEntry};
pub use grant::{CallScope, Grant, GrantView, Powers};
pub use handover::{GrantsHandover, LentGrants};
pub use home::NoHome;
pub use kind_error::KindError;
pub use list::{
    CallGrants, ConfigureError, GrantConfig, GrantKind, HasCallGrants, KINDS, MountGrants, PerPrincipalGrants, link,
};
pub use need::Need;
pub use network_handover::{EndpointHandover, MemoryHandover, NetworkHandover};
pub use outside::OutsideOpener;
pub use trusted_owner::{is_trusted_owner, is_writable_by_others};
pub(crate) use wasi::wasi;
