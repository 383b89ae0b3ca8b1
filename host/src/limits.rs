//! Admission: which calls may run, how many at once, and how long a call waits. Admission creates the [`Permit`] that
//! the sandbox requires for every call.
//!
//! ```
//! use belljar::interfaces::{Request, resources::Read};
//! use belljar::limits::{Admission, CallOrigin, Gate, Permit};
//! use belljar::policy::Access;
//!
//! async fn admitted(admission: &Admission, gate: &Gate, access: Access) -> Permit {
//!     let read = Request::from(Read { reference: "a.md".to_owned() });
//!     admission.admit(access, gate, CallOrigin::default(), &read, None).await.unwrap()
//! }
//! ```
//!
//! A permit requires an access:
//!
//! ```compile_fail,E0308
//! use belljar::interfaces::{Request, resources::Read};
//! use belljar::limits::{Admission, CallOrigin, Gate, Permit};
//! use belljar::model::MountName;
//!
//! async fn admitted(admission: &Admission, gate: &Gate, mount: MountName) -> Permit {
//!     let read = Request::from(Read { reference: "a.md".to_owned() });
//!     admission.admit(mount, gate, CallOrigin::default(), &read, None).await.unwrap()
//! }
//! ```
//!
//! ```compile_fail,E0451
//! use belljar::limits::Permit;
//!
//! fn longer(permit: Permit, deadline: tokio::time::Instant) -> Permit {
//!     Permit { deadline, ..permit }
//! }
//! ```

mod admit;
pub mod breaker;
pub mod caller_quotas;
mod cpu_share;
pub mod cpu_timer;
mod detached_threads;
mod gate;
pub mod gate_registry;
pub mod keyed_slots;
pub mod memory_account;
pub mod memory_budget;
mod mount_state;
mod operation;
mod operation_breaker;
mod processors;
pub mod progress;
mod turns;

pub use admit::{Admission, DetachedTurn, Permit, sandbox_capacity};
pub use caller_quotas::{AnswerQuota, CallerLimits};
pub use gate::{CallOrigin, Gate};
pub use operation::Operation;
pub use processors::processors;
pub use turns::Recall;
