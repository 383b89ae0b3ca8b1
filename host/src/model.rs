//! Plain data shared by every module: resources, limits, usage, errors.
//!
//! Must not know: WebAssembly, MCP, files, sockets. The types here may cross a process boundary between the gateway and
//! the sandbox. Therefore none of them holds a handle.

mod ask;
mod block;
pub mod bounds;
pub mod busy;
pub mod command;
mod decision_log;
mod digest;
pub mod error;
pub mod guard;
pub mod limits;
pub mod meta;
mod name;
mod nearest;
pub mod part;
mod quarantine;
mod reached_limit;
pub mod reference;
mod request_info;
mod resource;
pub mod seal;
mod skill;
pub mod strict_json;
pub mod template;
pub mod text;
mod tool;
mod trace_context;
mod upstream_span;
mod usage;
#[cfg(test)]
pub(crate) mod waiting;

pub use ask::{Answer, AnswerAction, AskContext, AskOutcome, AskedQuestions, Question};
pub use block::{Block, BlockBody, Link, Media, Message};
pub use decision_log::{Consent, Decision, DecisionKind, DecisionLog, MAX_REFUSALS};
pub use digest::{Digest, DigestError};
pub use error::{Blame, Fault, Limit, ReadError};
pub use guard::Guard;
pub use limits::Limits;
pub use name::{MAX_MOUNT_NAME, MountName, NameError};
pub use nearest::nearest;
pub use request_info::RequestInfo;
pub use resource::{Annotations, Body, Contents, Description, Icon, Meta, Page, Reading, Resource, Role, Template};
pub use skill::{SkillFiles, SkillPage};
pub use template::{CompletionInput, Suggestions};
pub use tool::{Effect, Prompt, PromptArgument, PromptCompletion, PromptResult, Tool, ToolResult, ToolView};
pub use trace_context::{RemoteSpan, TraceContext};
pub use upstream_span::UpstreamSpan;
pub use usage::Usage;

#[cfg(test)]
mod tests;
