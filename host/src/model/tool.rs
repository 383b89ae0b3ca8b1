//! Tools and prompts of a provider: their definitions and results.

use serde::{Deserialize, Serialize};

use super::block::{Block, Message};
use super::resource::{Icon, Meta};

/// The claim of a provider about what a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It adds something, and changes or deletes nothing.
    Adds,
    /// It may change or delete something.
    Destroys,
}

/// A page that shows the results of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolView {
    /// The relative reference of the page.
    pub page: String,
    /// True if only the page may call the tool, and not the model.
    pub app_only: bool,
}

/// The definition of a tool. Its name is that of the provider, without the mount's prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: String,
    /// The JSON Schema of the arguments, as JSON text.
    pub input: String,
    /// The JSON Schema of the structured result, as JSON text.
    pub output: Option<String>,
    /// The claimed effect.
    pub effect: Effect,
    /// True if a second call with the same arguments changes nothing more. A claim.
    pub idempotent: bool,
    /// True if it reaches beyond the mount's own data. A claim.
    pub open_world: bool,
    /// The page that shows its results.
    pub view: Option<ToolView>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Entries of `_meta` for the client.
    pub meta: Meta,
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The result for the model.
    pub content: Vec<Block>,
    /// The result for programs: the JSON text of an object.
    pub structured: Option<String>,
    /// True if the call failed in a way that the model can correct.
    pub is_error: bool,
    /// Entries of `_meta` for the client.
    pub meta: Meta,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// True if the prompt cannot do without it.
    pub required: bool,
}

/// The definition of a prompt. Its name is that of the provider, without the mount's prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people.
    pub description: String,
    /// Its arguments.
    pub arguments: Vec<PromptArgument>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Entries of `_meta` for the client.
    pub meta: Meta,
}

/// The messages of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptResult {
    /// What the messages are for.
    pub description: Option<String>,
    /// The messages, at least one.
    pub messages: Vec<Message>,
}

/// A request to complete an argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCompletion {
    /// The prompt, without the mount's prefix.
    pub prompt: String,
    /// The argument.
    pub name: String,
    /// Its value so far.
    pub value: String,
    /// The arguments that already have a value.
    pub resolved: Vec<(String, String)>,
}
