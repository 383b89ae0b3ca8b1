//! The traits that an author implements. They mirror the interfaces of `wit/provider.wit` in plain Rust.

#[cfg(feature = "tools")]
use crate::ToolSet;
use crate::{
    Argument, Error, Info, Page, PartialReading, PromptSet, Range, Reading, Result, Skill, SkillPage, Suggestions,
    Template,
};

/// A provider of resources.
///
/// A value lives for one call: the host starts a fresh instance, [`open`](Provider::open) makes the value, one method
/// is called, and everything is dropped.
pub trait Provider: Sized {
    /// Makes the value for one call. Read grants and settings here.
    ///
    /// An error here is the error of the call. Not called for [`describe`](Provider::describe).
    fn open() -> Result<Self>;

    /// The description of the provider. Must work without any grant.
    ///
    /// Empty by default.
    fn describe() -> Info {
        Info::default()
    }

    /// Lists resources, a page at a time.
    ///
    /// `cursor` is `None` for the first page. For other pages, it is the [`next_cursor`](Page::next_cursor) of an earlier
    /// page, which another instance returned. [`Page::of`] makes such pages from entries in a stable order.
    ///
    /// Empty by default, for providers whose resources all match a template.
    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let _ = cursor;
        Ok(Page::default())
    }

    /// Lists all templates. Empty by default.
    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(Vec::new())
    }

    /// Reads one resource. `reference` is well formed, but the resource may not exist: return [`Error::NotFound`] then.
    fn read(&self, reference: &str) -> Result<Reading>;
}

/// Suggests values for the variables of templates. Export it with `export!(Type: Completion)`.
pub trait Completion: Provider {
    /// Suggests values for `argument`, a variable of `template` whose value may be incomplete. `resolved` are the variables
    /// that already have a value. [`Suggestions::starting_with`] makes suggestions from a list of known values.
    ///
    /// Without suggestions, return an empty list, not an error.
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions>;
}

/// Detects changes cheaply. Export it with `export!(Type: Revisions)`.
///
/// A revision is any text of at most 256 bytes, such as a hash or a time, which the host compares with an earlier one.
pub trait Revisions: Provider {
    /// The revision of the list. It differs from an earlier one if the listed resources or templates differ.
    fn catalog_revision(&self) -> Result<String>;

    /// The revision of one resource. It differs from an earlier one if a read would return other contents.
    fn resource_revision(&self, reference: &str) -> Result<String>;

    /// The revisions of several resources, one result for each and in the same order.
    ///
    /// By default, calls [`resource_revision`](Revisions::resource_revision) for each. Implement this method if computing all
    /// revisions together is cheaper.
    fn resource_revisions(&self, references: &[String]) -> Vec<Result<String>> {
        references.iter().map(|reference| self.resource_revision(reference)).collect()
    }
}

/// Reads a range of a resource, and lists the resources below a reference. Export it with `export!(Type: Parts)`.
///
/// The host calls [`read_part`](Parts::read_part) in place of [`Provider::read`]: without a range, both must give the same.
/// It makes `?bytes=0-65535` and `?lines=1-200` of a URI a range, so the reference has no such query.
pub trait Parts: Provider {
    /// Reads a part of one resource, or the whole resource if `range` is `None` and the contents fit.
    ///
    /// `most` is the number of bytes that all contents together may have. If the requested range has more, give its first
    /// part, which ends at the end of a line or of a character; the [`Extent`](crate::Extent) says where. If the resource
    /// cannot be read in this unit, fail with [`Error::Invalid`], and say in which unit it can.
    ///
    /// [`PartialReading::cut`] makes a part of contents that are in memory.
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading>;

    /// Lists the resources directly below a reference, a page at a time; `cursor` is as for
    /// [`Provider::list_resources`]. `""` is the mount itself.
    ///
    /// A directory has the media type `inode/directory`, and its reference ends with `/`. Fails with [`Error::NotFound`]
    /// if there is no such directory, which is the default.
    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        let _ = (reference, cursor);
        Err(Error::NotFound)
    }
}

/// Functions that a model calls. Export it with `export!(Type: Tools)`; needs the feature `tools`.
///
/// A tool is a method with typed arguments. Its schema comes from their types, and the descriptions in it from their comments:
///
/// ```
/// use belljar_guest::{Context, Error, Outcome, Provider, Reading, Result, Structured, Tool, Tools, ToolSet};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// struct Dice;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Roll {
///     /// How many sides the dice have
///     #[schemars(range(min = 2, max = 100))]
///     sides: u32,
///     /// The numbers of earlier rolls
///     #[serde(default)]
///     earlier: Vec<u32>,
/// }
///
/// #[derive(Serialize, JsonSchema)]
/// struct Rolled {
///     number: u32,
/// }
///
/// impl Dice {
///     fn roll(&self, Roll { sides, earlier }: Roll) -> Result<Structured<Rolled>> {
///         let number = (earlier.iter().sum::<u32>() % sides) + 1;
///         Ok(Structured::new(format!("It is a {number}."), Rolled { number }))
///     }
///
///     fn sides(&self) -> Result<&'static str> {
///         Ok("From 2 to 100.")
///     }
/// }
///
/// impl Tools for Dice {
///     fn tools() -> ToolSet<Self> {
///         ToolSet::new()
///             .tool(Tool::reading("roll", "Rolls a die."), Self::roll)
///             .tool(Tool::reading("sides", "Which dice there are."), Self::sides)
///     }
/// }
///
/// # impl Provider for Dice {
/// #     fn open() -> Result<Self> { Ok(Dice) }
/// #     fn read(&self, _reference: &str) -> Result<Reading> { Err(Error::NotFound) }
/// # }
/// belljar_guest::export!(Dice: Tools);
///
/// // As the host calls it:
/// let result = Dice::tools().call(&Dice, "roll", r#"{"sides": 6, "earlier": [3, 4]}"#, &Context::default())?;
/// assert_eq!(result.done().and_then(|result| result.structured).as_deref(), Some(r#"{"number":2}"#));
/// # Ok::<(), Error>(())
/// ```
#[cfg(feature = "tools")]
pub trait Tools: Provider {
    /// All tools, at most 128. Called without any grant.
    fn tools() -> ToolSet<Self>;
}

/// Messages that a person chooses, to begin a conversation. Export it with `export!(Type: Prompts)`.
///
/// ```
/// use belljar_guest::{Arguments, Context, Error, Message, Prompt, PromptArgument, Prompts, PromptSet, Provider};
/// use belljar_guest::{Reading, Result};
///
/// struct Letters;
///
/// impl Letters {
///     fn thank(&self, arguments: &Arguments) -> Result<Message> {
///         Ok(Message::user(format!("Write a letter of thanks to {}.", arguments.require("name")?)))
///     }
/// }
///
/// impl Prompts for Letters {
///     fn prompts() -> PromptSet<Self> {
///         let name = PromptArgument::required("name").description("Who gets the letter");
///         PromptSet::new().prompt(Prompt::new("thank", "A letter of thanks.").argument(name), Self::thank)
///     }
/// }
///
/// # impl Provider for Letters {
/// #     fn open() -> Result<Self> { Ok(Letters) }
/// #     fn read(&self, _reference: &str) -> Result<Reading> { Err(Error::NotFound) }
/// # }
/// belljar_guest::export!(Letters: Prompts);
///
/// let arguments = Arguments::from([("name", "Ada")]);
/// let result = Letters::prompts().get(&Letters, "thank", &arguments, &Context::default())?;
/// let messages = result.done().map(|result| result.messages);
/// assert_eq!(messages, Some(vec![Message::user("Write a letter of thanks to Ada.")]));
/// # Ok::<(), Error>(())
/// ```
pub trait Prompts: Provider {
    /// All prompts, at most 128. Called without any grant.
    fn prompts() -> PromptSet<Self>;

    /// Suggests values for `argument` of the prompt `prompt`, whose value may be incomplete. `resolved` are the arguments that
    /// already have a value. [`Suggestions::starting_with`] makes suggestions from a list of known values.
    ///
    /// None by default.
    fn complete_prompt(&self, prompt: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        let _ = (prompt, argument, resolved);
        Ok(Suggestions::default())
    }
}

/// Directories with a `SKILL.md` that tells a model how to do something. Export it with `export!(Type: Skills)`.
///
/// [`Provider::read`] serves their files, and the host computes their digests.
pub trait Skills: Provider {
    /// Lists skills, a page at a time; `cursor` is as for [`Provider::list_resources`].
    fn list_skills(&self, cursor: Option<&str>) -> Result<SkillPage>;

    /// One skill, whether it is listed or not. `root` is the reference of its directory.
    ///
    /// By default, looks for it in all pages of the list. Implement this method if the list is long or incomplete.
    fn get_skill(&self, root: &str) -> Result<Skill> {
        let mut cursor = None;
        loop {
            let page = self.list_skills(cursor.as_deref())?;
            if let Some(skill) = page.skills.into_iter().find(|skill| skill.root == root) {
                return Ok(skill);
            }
            cursor = Some(page.next_cursor.ok_or(Error::NotFound)?);
        }
    }
}

/// Opens the provider and calls one of its methods. Every call from the host goes through this function.
#[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "only calls from the host use this function"))]
pub(crate) fn call<P: Provider, T>(method: impl FnOnce(&P) -> Result<T>) -> Result<T, Error> {
    method(&P::open()?)
}
