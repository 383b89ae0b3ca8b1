//! Tools: their definitions, their results, and the set of a provider's tools.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::{Context, Outcome};
use super::block::Block;
use super::{Icon, schema};
use crate::{Error, Result};

/// What a tool does to the world. The host tells clients that a tool only reads if the mount's grants leave it no other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It adds something, and changes or deletes nothing.
    Adds,
    /// It may change or delete something.
    Destroys,
}

/// A page that shows the results of a tool (MCP Apps).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// The reference of the page: `read` returns HTML for it. Clients see it as `ui://<mount>/<page>`.
    pub page: String,
    /// True if only the page may call the tool, and not the model.
    pub app_only: bool,
}

/// The definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// The name: letters, digits, `_` and `-`, at most 48. Clients see `<mount>_<name>`.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the tool does and when to use it, for models.
    pub description: String,
    /// The JSON text of the arguments' schema. [`ToolSet::list`] fills it from the function, unless it is set.
    pub input: Option<String>,
    /// The JSON text of the structured result's schema. [`ToolSet::list`] fills it from the function, unless it is set.
    pub output: Option<String>,
    /// What the tool does to the world.
    pub effect: Effect,
    /// True if a second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// True if it reaches beyond the mount's own data. The host corrects it by the mount's grants.
    pub open_world: bool,
    /// The page that shows its results.
    pub view: Option<View>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
    /// Further data: a key and the JSON text of its value.
    pub meta: Vec<(String, String)>,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The result for the model. May be empty only beside `structured`.
    pub content: Vec<Block>,
    /// The result for programs: the JSON text of an object. Some clients show their model only this one, and others only
    /// `content`, so each must be complete.
    pub structured: Option<String>,
    /// True if the call failed in a way that the model can correct.
    pub is_error: bool,
    /// Further data: a key and the JSON text of its value.
    pub meta: Vec<(String, String)>,
}

/// A result in two forms: a text for models, and a value for programs. The schema of `T` becomes the tool's output schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Structured<T> {
    /// The result for models. It must contain all of `value`.
    pub text: String,
    /// The result for programs: a struct.
    pub value: T,
}

/// The arguments of a tool that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, JsonSchema)]
pub struct NoArguments {}

impl Tool {
    /// A tool that changes nothing. It is also [idempotent](Tool::idempotent).
    pub fn reading(name: impl Into<String>, description: impl Into<String>) -> Self {
        Tool::with(name.into(), description.into(), Effect::Reads).idempotent()
    }

    /// A tool that adds something, and changes or deletes nothing.
    pub fn adding(name: impl Into<String>, description: impl Into<String>) -> Self {
        Tool::with(name.into(), description.into(), Effect::Adds)
    }

    /// A tool that may change or delete something.
    pub fn destroying(name: impl Into<String>, description: impl Into<String>) -> Self {
        Tool::with(name.into(), description.into(), Effect::Destroys)
    }

    /// Says that a second call with the same arguments changes nothing more.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Says that the tool reaches beyond the mount's own data, such as a server on the network.
    pub fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Sets the name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the schema of the arguments, as JSON text. Clients get it unchanged.
    pub fn input(mut self, schema: impl Into<String>) -> Self {
        self.input = Some(schema.into());
        self
    }

    /// Sets the schema of the structured result, as JSON text. Clients get it unchanged.
    pub fn output(mut self, schema: impl Into<String>) -> Self {
        self.output = Some(schema.into());
        self
    }

    /// Sets the page that shows the results.
    pub fn view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// Adds a picture.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Adds further data: `json` is the JSON text of one value.
    pub fn meta(mut self, key: impl Into<String>, json: impl Into<String>) -> Self {
        self.meta.push((key.into(), json.into()));
        self
    }

    fn with(name: String, description: String, effect: Effect) -> Self {
        Tool {
            name,
            title: None,
            description,
            input: None,
            output: None,
            effect,
            idempotent: false,
            open_world: false,
            view: None,
            icons: Vec::new(),
            meta: Vec::new(),
        }
    }
}

impl View {
    /// The page at this reference.
    pub fn new(page: impl Into<String>) -> Self {
        View { page: page.into(), app_only: false }
    }

    /// Hides the tool from the model: only the page may call it.
    pub fn app_only(mut self) -> Self {
        self.app_only = true;
        self
    }
}

impl ToolResult {
    /// These pieces of content.
    pub fn new(content: impl IntoIterator<Item = Block>) -> Self {
        ToolResult { content: content.into_iter().collect(), ..ToolResult::default() }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolResult::new([Block::text(text)])
    }

    /// A failure that the model can correct, such as a date in the past; the text says how.
    pub fn error(text: impl Into<String>) -> Self {
        ToolResult { is_error: true, ..ToolResult::text(text) }
    }

    /// Adds a piece of content.
    pub fn block(mut self, block: impl Into<Block>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets the result for programs: the JSON text of an object.
    pub fn structured(mut self, json: impl Into<String>) -> Self {
        self.structured = Some(json.into());
        self
    }

    /// Adds further data: `json` is the JSON text of one value.
    pub fn meta(mut self, key: impl Into<String>, json: impl Into<String>) -> Self {
        self.meta.push((key.into(), json.into()));
        self
    }
}

impl From<Block> for ToolResult {
    fn from(block: Block) -> Self {
        ToolResult::new([block])
    }
}

impl<T> Structured<T> {
    /// `value` for programs, and `text`, which says the same to models.
    pub fn new(text: impl Into<String>, value: T) -> Self {
        Structured { text: text.into(), value }
    }
}

/// What the function of a tool returns: [`ToolResult`], [`Structured`], a text, a [`Block`], or an [`Outcome`] of one of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a result of a tool",
    label = "expected `ToolResult`, `Structured<T>`, `String`, `&'static str`, `Block`, or an `Outcome` of one of them"
)]
pub trait ToolOutput {
    /// The schema of the structured result. `None` if there is no structured result.
    fn schema() -> Option<Value> {
        None
    }

    /// The result of the call.
    fn into_outcome(self) -> Result<Outcome<ToolResult>>;
}

impl ToolOutput for ToolResult {
    fn into_outcome(self) -> Result<Outcome<ToolResult>> {
        Ok(Outcome::Done(self))
    }
}

impl From<ToolResult> for Outcome<ToolResult> {
    fn from(result: ToolResult) -> Self {
        Outcome::Done(result)
    }
}

impl ToolOutput for String {
    fn into_outcome(self) -> Result<Outcome<ToolResult>> {
        Ok(Outcome::Done(ToolResult::text(self)))
    }
}

impl ToolOutput for &'static str {
    fn into_outcome(self) -> Result<Outcome<ToolResult>> {
        Ok(Outcome::Done(ToolResult::text(self)))
    }
}

impl ToolOutput for Block {
    fn into_outcome(self) -> Result<Outcome<ToolResult>> {
        Ok(Outcome::Done(self.into()))
    }
}

impl<T: Serialize + JsonSchema> ToolOutput for Structured<T> {
    fn schema() -> Option<Value> {
        Some(schema::output::<T>())
    }

    fn into_outcome(self) -> Result<Outcome<ToolResult>> {
        let json = serde_json::to_string(&self.value)
            .map_err(|error| Error::failed(format_args!("cannot write the structured result: {error}")))?;
        Ok(Outcome::Done(ToolResult::text(self.text).structured(json)))
    }
}

impl<T: ToolOutput> ToolOutput for Outcome<T> {
    fn schema() -> Option<Value> {
        T::schema()
    }

    fn into_outcome(self) -> Result<Outcome<ToolResult>> {
        match self {
            Outcome::Done(result) => result.into_outcome(),
            Outcome::Ask(ask) => Ok(Outcome::Ask(ask)),
        }
    }
}

/// A function that is a tool: a method of the provider `P`.
///
/// `fn(&P) -> Result<T>`, `fn(&P, A) -> Result<T>` or `fn(&P, A, &Context) -> Result<T>`, where `A` has the arguments as fields
/// and `T` is a [`ToolOutput`]. `Form` only tells the three apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function for a tool",
    label = "expected `fn(&Self, A) -> Result<T>`, `fn(&Self, A, &Context) -> Result<T>` or `fn(&Self) -> Result<T>`",
    note = "`A` is a struct with `#[derive(serde::Deserialize, schemars::JsonSchema)]`; `T` is a `ToolOutput`"
)]
pub trait ToolFunction<P, Form>: 'static {
    /// The arguments.
    type Arguments: DeserializeOwned;
    /// The result.
    type Output: ToolOutput;

    /// Calls the function.
    fn call(&self, provider: &P, arguments: Self::Arguments, context: &Context) -> Result<Self::Output>;
}

impl<P, T, F> ToolFunction<P, (T,)> for F
where
    T: ToolOutput,
    F: Fn(&P) -> Result<T> + 'static,
{
    type Arguments = NoArguments;
    type Output = T;

    fn call(&self, provider: &P, _arguments: NoArguments, _context: &Context) -> Result<T> {
        self(provider)
    }
}

impl<P, A, T, F> ToolFunction<P, (A, T)> for F
where
    A: DeserializeOwned,
    T: ToolOutput,
    F: Fn(&P, A) -> Result<T> + 'static,
{
    type Arguments = A;
    type Output = T;

    fn call(&self, provider: &P, arguments: A, _context: &Context) -> Result<T> {
        self(provider, arguments)
    }
}

impl<P, A, T, F> ToolFunction<P, (A, T, Context)> for F
where
    A: DeserializeOwned,
    T: ToolOutput,
    F: Fn(&P, A, &Context) -> Result<T> + 'static,
{
    type Arguments = A;
    type Output = T;

    fn call(&self, provider: &P, arguments: A, context: &Context) -> Result<T> {
        self(provider, arguments, context)
    }
}

/// The schema of any arguments.
const ANY: &str = r#"{"type":"object"}"#;

/// The schemas of the arguments and of the structured result. Functions, so that a call does not make them.
type Schemas = (fn() -> Value, fn() -> Option<Value>);

/// One tool of a set.
struct Entry<P> {
    tool: Tool,
    schemas: Option<Schemas>,
    #[expect(clippy::type_complexity, reason = "used once")]
    call: Box<dyn Fn(&P, &str, &Context) -> Result<Outcome<ToolResult>>>,
}

/// The tools of a provider `P`: each definition with its function.
pub struct ToolSet<P> {
    entries: Vec<Entry<P>>,
}

impl<P> ToolSet<P> {
    /// No tools.
    pub fn new() -> Self {
        ToolSet { entries: Vec::new() }
    }

    /// Adds a tool. `function` is usually a method of the provider; see [`ToolFunction`].
    ///
    /// The schemas of the function's types become those of the tool, unless [`Tool::input`] or [`Tool::output`] set others.
    pub fn tool<Form, F: ToolFunction<P, Form>>(self, tool: Tool, function: F) -> Self
    where
        F::Arguments: JsonSchema,
    {
        self.with(tool, Some((schema::arguments::<F::Arguments>, F::Output::schema)), function)
    }

    /// Adds a tool that has its schemas already, from [`Tool::input`] and [`Tool::output`]. Without an input schema, it accepts
    /// any arguments.
    ///
    /// If no tool of the component needs schemas of Rust types, it is about 110 KB smaller.
    pub fn tool_with_schemas<Form, F: ToolFunction<P, Form>>(self, tool: Tool, function: F) -> Self {
        self.with(tool, None, function)
    }

    fn with<Form, F: ToolFunction<P, Form>>(mut self, tool: Tool, schemas: Option<Schemas>, function: F) -> Self {
        let call = move |provider: &P, arguments: &str, context: &Context| {
            let arguments = serde_json::from_str(arguments)
                .map_err(|error| Error::invalid(format_args!("the arguments do not fit the schema: {error}")))?;
            function.call(provider, arguments, context)?.into_outcome()
        };
        self.entries.push(Entry { tool, schemas, call: Box::new(call) });
        self
    }

    /// The definitions of all tools, with their schemas.
    pub fn list(&self) -> Vec<Tool> {
        let complete = |entry: &Entry<P>| {
            let mut tool = entry.tool.clone();
            let schemas = entry.schemas;
            tool.input.get_or_insert_with(|| schemas.map_or(ANY.to_owned(), |(input, _)| input().to_string()));
            tool.output = tool.output.or_else(|| Some(schemas?.1()?.to_string()));
            tool
        };
        self.entries.iter().map(complete).collect()
    }

    /// Calls the tool `name`. `arguments` is the JSON text of an object.
    ///
    /// Fails with [`Error::NotFound`] if there is no such tool, and with [`Error::Invalid`] if the arguments do not fit.
    pub fn call(&self, provider: &P, name: &str, arguments: &str, context: &Context) -> Result<Outcome<ToolResult>> {
        let entry = self.entries.iter().find(|entry| entry.tool.name == name).ok_or(Error::NotFound)?;
        (entry.call)(provider, arguments, context)
    }
}

impl<P> Default for ToolSet<P> {
    fn default() -> Self {
        ToolSet::new()
    }
}

impl<P> fmt::Debug for ToolSet<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| &entry.tool)).finish()
    }
}

#[cfg(test)]
mod tests;
