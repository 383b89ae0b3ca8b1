//! The editing part of a kind of grant: configuration text, command line flags, and descriptions for people.

use toml_edit::TableLike;

use super::edit::{EditDirectories, EditError, Flag, GrantArgs};
use super::grant::Grant;
use super::need::{Need, NeedSchema};
use super::secrets::SecretTemplate;
use crate::model::command;

/// Describes a kind of grant to people, and edits its grants in the configuration file.
pub trait GrantEditor: Grant {
    /// An example of a configuration line that grants something of this kind.
    const EXAMPLE: &'static str;

    /// What the key grants, in one or two sentences for the JSON schema and the reference of the configuration.
    const SUMMARY: &'static str;

    /// The flag of `belljar grant MOUNT --NAME VALUE`. Its name is [`Grant::NAME`].
    const FLAG: Flag;

    /// Further flags. Each refines the grant of the preceding [`GrantEditor::FLAG`].
    const EXTRA_FLAGS: &'static [Flag] = &[];

    /// The placeholder for a granted thing in the help of `belljar revoke MOUNT --NAME THING`.
    const REVOKE_PLACEHOLDER: &'static str;

    /// How a provider declares a need of this kind.
    const NEED_SCHEMA: NeedSchema;

    /// The words between "wants" and the name of the thing in a consent question.
    const CONSENT_QUESTION: &'static str = "to use";

    /// True if a person must consent before a call gets some of these grants.
    fn needs_consent(_config: &Self::Config) -> bool {
        false
    }

    /// The configured texts that may contain secrets.
    fn templates(_config: &Self::Config) -> Vec<&SecretTemplate> {
        Vec::new()
    }

    /// One line for each grant, in the operator's words.
    fn describe(config: &Self::Config) -> Vec<String>;

    /// For each grant that asks for consent: its line in [`GrantEditor::describe`], and the line that the same grant
    /// has without asking.
    fn consent_lines(_config: &Self::Config) -> Vec<(String, String)> {
        Vec::new()
    }

    /// For each grant, the words that complete the sentence "it can ...".
    fn explain(config: &Self::Config) -> Vec<String>;

    /// True if the configuration grants `need`.
    fn meets(config: &Self::Config, need: &Need) -> bool;

    /// The configuration line and the flags of `belljar grant` that grant `need` to `mount`. Without a need, an
    /// example. `None` if only the operator knows the value.
    fn suggest(mount: &str, need: Option<&Need>) -> Option<GrantSuggestion>;

    /// Writes a grant into the mount's table.
    ///
    /// # Errors
    /// States the expected form.
    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, directories: &EditDirectories) -> Result<(), EditError>;

    /// Writes a permanent grant of the thing that a consent of this kind names into the mount's table.
    ///
    /// # Errors
    /// When no grant of this kind asks for consent.
    fn grant_permanently(_: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        Err(EditError::NeverAsked { kind: Self::NAME, name: name.to_owned() })
    }

    /// Removes a grant from the mount's table.
    ///
    /// # Errors
    /// When the mount lacks this grant. The error lists the mount's grants of this kind.
    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError>;

    /// Advice for a mount whose provider may miss another grant of this kind. `held` are the mount's lines of
    /// [`GrantEditor::describe`].
    fn advise_missing(_mount: &str, _held: &[&str]) -> Option<String> {
        None
    }

    /// Warnings about the arguments of a new grant.
    fn advise(_: &GrantArgs) -> Vec<String> {
        Vec::new()
    }
}

/// A grant as an operator can type it: as a configuration line and as flags of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantSuggestion {
    /// The configuration line under `[mounts.NAME]`.
    pub line: String,
    /// The arguments after `belljar grant MOUNT`.
    pub flags: Vec<String>,
    /// A command that has to run before, for example to create the directory.
    pub prerequisite: Option<String>,
}

impl GrantSuggestion {
    /// Both ways to grant this to `mount`: the configuration line, then the command.
    pub fn cure(&self, mount: &str) -> String {
        format!("add  {}  to [mounts.{mount}], or run: {}", self.line, self.command(mount))
    }

    /// The command that grants this to `mount`.
    pub fn command(&self, mount: &str) -> String {
        let grant = command::line(["grant", mount].into_iter().chain(self.flags.iter().map(String::as_str)));
        self.prerequisite.as_ref().map_or(grant.clone(), |before| format!("{before} && {grant}"))
    }
}
