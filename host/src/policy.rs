//! Principals and their permissions. Pure data and pure functions: no I/O, no waiting, the same decision for the same
//! input.
//!
//! A transport proves an identity, which becomes a [`Principal`]. Policy gives a principal an [`Access`], and admission
//! requires an access for a permit:
//!
//! ```
//! use belljar::model::MountName;
//! use belljar::policy::{Action, Evidence, Policy, authenticate};
//!
//! let principal = authenticate(Evidence::Loopback);
//! let mount = MountName::new("notes").unwrap();
//! let access = Policy.authorize(principal, Action::Read, &mount, Some("a.md")).unwrap();
//! assert_eq!(access.principal().as_str(), "anonymous");
//! ```
//!
//! There is no other way to create either. A principal:
//!
//! ```compile_fail,E0423
//! let principal = belljar::policy::Principal("local");
//! ```
//!
//! An access, first by its fields, then for a principal that nothing proved:
//!
//! ```compile_fail,E0451
//! use belljar::model::MountName;
//! use belljar::policy::{Access, Action, Evidence, authenticate};
//!
//! let principal = authenticate(Evidence::Loopback);
//! let mount = MountName::new("notes").unwrap();
//! let access = Access { principal, action: Action::Read, mount };
//! ```
//!
//! ```compile_fail,E0308
//! use belljar::model::MountName;
//! use belljar::policy::{Action, Policy};
//!
//! let mount = MountName::new("notes").unwrap();
//! let access = Policy.authorize("local", Action::Read, &mount, None);
//! ```

mod access;
mod caller;
mod principal;

pub use access::{Access, Action, Policy};
pub use caller::Caller;
pub use principal::{Evidence, Principal, authenticate};
