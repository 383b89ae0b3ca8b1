//! Principals and their permissions. Pure data and pure functions: no I/O, no waiting, the same decision for the same
//! input.
//!
//! A transport proves an identity, which becomes a [`Principal`]. Policy gives a principal an [`Access`], and admission
//! requires an access for a permit:
//!
//! ```
//! use std::time::SystemTime;
//!
//! use belljar::model::MountName;
//! use belljar::policy::{Action, Evidence, Policy, Target, authenticate};
//!
//! let principal = authenticate(Evidence::Loopback);
//! let mount = MountName::new("notes").unwrap();
//! let target = Target { mount: &mount, base: "belljar://notes/", reference: Some("a.md") };
//! let access = Policy::default().authorize(&principal, Action::Read, target, SystemTime::now()).unwrap();
//! assert_eq!(access.principal().to_string(), "anonymous");
//! ```
//!
//! Rules ([`RuleSet`]) say which principals may do which actions on which resources, and when. Without any rule everybody
//! may do everything. [`Policy`] holds the rules in force; a change of the configuration replaces them.
//!
//! There is no other way to create a principal or an access. A principal:
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
//! use belljar::policy::{Action, Policy, Target};
//!
//! let mount = MountName::new("notes").unwrap();
//! let target = Target { mount: &mount, base: "belljar://notes/", reference: None };
//! let access = Policy::default().authorize("local", Action::Read, target, std::time::SystemTime::now());
//! ```

mod access;
mod actions;
mod area;
mod caller;
pub mod cedar;
mod class;
mod decider;
mod decision;
mod explain;
mod glob;
mod judge;
mod live;
mod pattern;
mod principal;
mod rate;
mod rate_text;
mod rule;
mod rule_set;
mod schedule;
mod spelling;
#[cfg(test)]
pub(crate) mod test_rules;
mod visibility;
mod who;

#[cfg(test)]
mod tests;

pub use access::{Access, Action, Refusal, Target};
pub use actions::{ActionSet, UnknownAction};
pub use caller::{Caller, CallerId};
pub use class::AccessClass;
pub use decider::Decider;
pub use explain::{Explanation, Obstacle};
pub use live::Policy;
pub use pattern::{PatternError, UriPattern};
pub use principal::{Evidence, KeyIdentity, Principal, PrincipalId, PrincipalKind, TokenIdentity, authenticate};
pub use rate::{QuotaRule, QuotaUnit};
pub use rate_text::{RateError, RateRule};
pub use rule::{Rule, RuleNumber, RuleOrigin, RuleResources};
pub use rule_set::RuleSet;
pub use schedule::{Schedule, ScheduleError};
pub use visibility::Visibility;
pub use who::{ScopeSet, Who, WhoError};
