//! Write belljar providers in Rust.
//!
//! A provider is a type that implements [`Provider`]; [`export!`] makes a component of it. This is a complete provider:
//!
//! ```
//! use belljar_guest::{Contents, Error, Page, Provider, Reading, Resource, Result};
//!
//! struct Greetings;
//!
//! const GREETINGS: [(&str, &str); 2] = [("english", "Hello"), ("german", "Guten Tag")];
//!
//! impl Provider for Greetings {
//!     fn open() -> Result<Self> {
//!         Ok(Greetings)
//!     }
//!
//!     fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
//!         let all = GREETINGS.iter().map(|(name, _)| Resource::new(*name).mime_type("text/plain"));
//!         Ok(Page::of(all, cursor, 1000))
//!     }
//!
//!     fn read(&self, reference: &str) -> Result<Reading> {
//!         let (_, text) = GREETINGS.iter().find(|(name, _)| *name == reference).ok_or(Error::NotFound)?;
//!         Ok(Contents::text(reference, *text).mime_type("text/plain").into())
//!     }
//! }
//!
//! belljar_guest::export!(Greetings);
//!
//! // A provider is plain Rust, so it is tested like plain Rust, without a host:
//! let provider = Greetings::open()?;
//! assert_eq!(provider.list_resources(None)?.resources.len(), 2);
//! assert_eq!(provider.read("german")?, Contents::text("german", "Guten Tag").mime_type("text/plain").into());
//! assert_eq!(provider.read("french"), Err(Error::NotFound));
//! # Ok::<(), Error>(())
//! ```
//!
//! Its `Cargo.toml` needs `crate-type = ["cdylib", "rlib"]` under `[lib]`: the first for the component, the second for
//! its tests. `cargo build --release --target wasm32-wasip2` then leaves a component that belljar can mount.
//!
//! # Guarantees for a provider
//!
//! * **Each call runs in a fresh instance.** [`Provider::open`] makes the value, one method is called, and everything is
//!   dropped. Statics, caches and counters start anew. A [cursor](Page::next_cursor) must contain everything that the next
//!   call needs.
//! * **The standard library gives access to the grants**: `std::fs` below the granted directories, `std::env::var` for
//!   granted settings. Without grants, both are empty, but the provider can still compute, list and return contents.
//! * **References are validated.** They are relative to the mount, percent-encoded, without dot segments, and `""` is
//!   the mount itself. [`mod@reference`] converts between references and paths.
//! * **A panic is a trap**: it fails this call only. Its message, like all output of a provider, goes to the host's log. For
//!   expected failures, return an [`Error`]: the caller gets its reason.
//!
//! # Optional interfaces
//!
//! Implement the trait and name it in the macro: `export!(Greetings: Completion, Tools)`.
//!
//! | trait | for |
//! |---|---|
//! | [`Completion`] | suggests values for the variables of templates |
//! | [`Revisions`] | makes subscriptions cheap |
//! | [`Parts`] | reads a range of a large resource, lists a directory |
//! | `Tools` | functions that a model calls; needs the feature `tools`, which adds serde and schemars |
//! | [`Prompts`] | messages that a person chooses |
//! | [`Skills`] | directories that tell a model how to do something |
//!
//! Requests over HTTP are in the module `http`; it needs the feature `http`.
//!
//! A long call tells its caller how far it is: [`mod@progress`].

mod error;
mod export;
#[cfg(feature = "http")]
pub mod http;
mod model;
pub mod progress;
mod provider;
pub mod reference;

pub use error::{Error, Result};
pub use model::ask::{Action, Answer, Ask, Context, Outcome, Question};
pub use model::block::{Block, BlockBody, Link, Media, Message};
pub use model::part::{Extent, PartialReading, Positions, Range, Unit};
pub use model::prompt::{Arguments, Prompt, PromptArgument, PromptFunction, PromptResult, PromptSet};
pub use model::skill::{Skill, SkillPage};
#[cfg(feature = "tools")]
pub use model::tool::{Effect, NoArguments, Structured, Tool, ToolFunction, ToolOutput, ToolResult, ToolSet, View};
pub use model::{
    Annotations, Argument, Body, Contents, Icon, Info, Page, Reading, Resource, Role, Suggestions, Template,
};
#[cfg(feature = "tools")]
pub use provider::Tools;
pub use provider::{Completion, Parts, Prompts, Provider, Revisions, Skills};

/// The expansion of [`export!`]. Not a public interface: it may change in any version.
#[doc(hidden)]
pub mod __private {
    #[cfg(target_family = "wasm")]
    pub use crate::export::*;
}
