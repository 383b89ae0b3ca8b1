//! Prompts: their definitions, their messages, and the set of a provider's prompts.

use std::fmt;

use super::ask::{Context, Outcome};
use super::block::Message;
use super::{Argument, Icon};
use crate::{Error, Result};

/// The definition of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The name: letters, digits, `_` and `-`, at most 48. Clients see `<mount>_<name>`.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: String,
    /// Its arguments, at most 32.
    pub arguments: Vec<PromptArgument>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
    /// Further data: a key and the JSON text of its value.
    pub meta: Vec<(String, String)>,
}

/// An argument of a prompt. Its values are texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The meaning of the argument.
    pub description: Option<String>,
    /// True if the prompt cannot do without it. The host checks that it is there.
    pub required: bool,
}

/// The messages of a prompt. Made from one [`Message`] with `into()`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// What these messages are for.
    pub description: Option<String>,
    /// The messages, at least one.
    pub messages: Vec<Message>,
}

/// The arguments of one call of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(Vec<Argument>);

impl Prompt {
    /// A prompt without arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Prompt { name: name.into(), description: description.into(), ..Prompt::default() }
    }

    /// Sets the name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.push(argument);
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
}

impl PromptArgument {
    /// An argument without which the host does not call the prompt.
    pub fn required(name: impl Into<String>) -> Self {
        PromptArgument { required: true, ..PromptArgument::optional(name) }
    }

    /// An argument that may be absent.
    pub fn optional(name: impl Into<String>) -> Self {
        PromptArgument { name: name.into(), ..PromptArgument::default() }
    }

    /// Sets the name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl PromptResult {
    /// These messages.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        PromptResult { description: None, messages: messages.into_iter().collect() }
    }

    /// Sets what these messages are for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl From<Message> for PromptResult {
    fn from(message: Message) -> Self {
        PromptResult::new([message])
    }
}

impl From<Message> for Outcome<PromptResult> {
    fn from(message: Message) -> Self {
        Outcome::Done(message.into())
    }
}

impl From<PromptResult> for Outcome<PromptResult> {
    fn from(result: PromptResult) -> Self {
        Outcome::Done(result)
    }
}

impl Arguments {
    /// The value of the argument `name`. `None` if it is absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|argument| argument.name == name).map(|argument| argument.value.as_str())
    }

    /// The value of the argument `name`.
    ///
    /// Fails with [`Error::Invalid`] if it is absent. The host checks this for arguments that are
    /// [required](PromptArgument::required).
    pub fn require(&self, name: &str) -> Result<&str> {
        self.get(name).ok_or_else(|| Error::invalid(format_args!("the argument \"{name}\" is missing")))
    }
}

impl FromIterator<Argument> for Arguments {
    fn from_iter<I: IntoIterator<Item = Argument>>(arguments: I) -> Self {
        Arguments(arguments.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Arguments {
    fn from(pairs: [(&str, &str); N]) -> Self {
        pairs.into_iter().map(|(name, value)| Argument::new(name, value)).collect()
    }
}

/// A function that makes the messages of a prompt: a method of the provider `P`.
///
/// `fn(&P, &Arguments) -> Result<T>` or `fn(&P, &Arguments, &Context) -> Result<T>`, where `T` is a [`Message`], a
/// [`PromptResult`] or an [`Outcome`]. `Form` only tells the two apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a function for a prompt",
    label = "expected `fn(&Self, &Arguments) -> Result<T>` or `fn(&Self, &Arguments, &Context) -> Result<T>`",
    note = "`T` is `Message`, `PromptResult` or `Outcome<PromptResult>`"
)]
pub trait PromptFunction<P, Form>: 'static {
    /// Calls the function.
    fn call(&self, provider: &P, arguments: &Arguments, context: &Context) -> Result<Outcome<PromptResult>>;
}

impl<P, T, F> PromptFunction<P, (T,)> for F
where
    T: Into<Outcome<PromptResult>>,
    F: Fn(&P, &Arguments) -> Result<T> + 'static,
{
    fn call(&self, provider: &P, arguments: &Arguments, _context: &Context) -> Result<Outcome<PromptResult>> {
        self(provider, arguments).map(Into::into)
    }
}

impl<P, T, F> PromptFunction<P, (T, Context)> for F
where
    T: Into<Outcome<PromptResult>>,
    F: Fn(&P, &Arguments, &Context) -> Result<T> + 'static,
{
    fn call(&self, provider: &P, arguments: &Arguments, context: &Context) -> Result<Outcome<PromptResult>> {
        self(provider, arguments, context).map(Into::into)
    }
}

type Get<P> = Box<dyn Fn(&P, &Arguments, &Context) -> Result<Outcome<PromptResult>>>;

/// The prompts of a provider `P`: each definition with its function.
pub struct PromptSet<P> {
    prompts: Vec<(Prompt, Get<P>)>,
}

impl<P> PromptSet<P> {
    /// No prompts.
    pub fn new() -> Self {
        PromptSet { prompts: Vec::new() }
    }

    /// Adds a prompt. `function` is usually a method of the provider; see [`PromptFunction`].
    pub fn prompt<Form>(mut self, prompt: Prompt, function: impl PromptFunction<P, Form>) -> Self {
        let get =
            move |provider: &P, arguments: &Arguments, context: &Context| function.call(provider, arguments, context);
        self.prompts.push((prompt, Box::new(get)));
        self
    }

    /// The definitions of all prompts.
    pub fn list(&self) -> Vec<Prompt> {
        self.prompts.iter().map(|(prompt, _)| prompt.clone()).collect()
    }

    /// Makes the messages of the prompt `name`.
    ///
    /// Fails with [`Error::NotFound`] if there is no such prompt.
    pub fn get(
        &self,
        provider: &P,
        name: &str,
        arguments: &Arguments,
        context: &Context,
    ) -> Result<Outcome<PromptResult>> {
        let (_, get) = self.prompts.iter().find(|(prompt, _)| prompt.name == name).ok_or(Error::NotFound)?;
        get(provider, arguments, context)
    }
}

impl<P> Default for PromptSet<P> {
    fn default() -> Self {
        PromptSet::new()
    }
}

impl<P> fmt::Debug for PromptSet<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.prompts.iter().map(|(prompt, _)| prompt)).finish()
    }
}

#[cfg(test)]
mod tests;
