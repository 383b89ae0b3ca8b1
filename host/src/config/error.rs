//! Errors of the configuration: the place, what was expected, and the cure.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use toml::de::DeTable;

use super::admin::AdminProblem;
use super::deserializer::{self, DeserializeError, Reason};
use super::issuer::IssuerProblem;
use super::replicas::ReplicasProblem;
use super::search::IndexProblem;
use super::serve::ServeProblem;
use super::trust::SignerProblem;
use crate::grants::secrets::PrincipalPathError;
use crate::grants::{GrantKind, KINDS};
use crate::model::error::show_bytes;
use crate::model::{MountName, NameError, nearest, text};

/// Why the configuration is refused: the first problem in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file. None if there is no file.
    pub file: Option<PathBuf>,
    /// The problem.
    pub problem: Box<Problem>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for Error {}

/// One problem. Texts from the file are cut and cleaned, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not TOML. Holds the parser's message, which shows the line.
    #[error("{0}")]
    NotToml(String),
    /// A text has no quotation marks.
    #[error("{position}: {key}{word}: put quotation marks around the text: {key}\"{word}\"")]
    Unquoted {
        /// Where it stands.
        position: FilePosition,
        /// `KEY = `. Empty in an array.
        key: String,
        /// The text.
        word: String,
    },
    /// A value has the wrong type or form, or is out of bounds.
    #[error("{key}{}: expected {expected}{}{}", equals(found), in_brackets(details), for_example(example))]
    Value {
        /// The key.
        key: ConfigKey,
        /// The value. None for an array and for a table.
        found: Option<Box<str>>,
        /// The values that the key takes, in words.
        expected: String,
        /// The message of the parser of the value.
        details: Option<Box<str>>,
        /// How a grant of this kind is written. None for a key that is no grant.
        example: Option<&'static str>,
    },
    /// A key that takes a table has another value.
    #[error("{key}: expected a table, [{}], and found a value of type {found}", key.path)]
    NotATable {
        /// The key.
        key: ConfigKey,
        /// The TOML type of its value.
        found: &'static str,
    },
    /// A value breaks another rule.
    #[error("{key}{}: {message}{}", equals(found), for_example(example))]
    BrokenRule {
        /// The key.
        key: ConfigKey,
        /// The value. None for an array and for a table.
        found: Option<Box<str>>,
        /// The rule.
        message: String,
        /// How a grant of this kind is written. None for a key that is no grant.
        example: Option<&'static str>,
    },
    /// The table does not take this key.
    #[error("{}unknown key \"{}\"; {cure}", key.before(), key.path)]
    UnknownKey {
        /// The key.
        key: ConfigKey,
        /// The key that was probably meant, or all keys of the table.
        cure: KeyCure,
    },
    /// The name of a table is not a mount name.
    #[error("[mounts.{table}]: {error}")]
    MountName {
        /// The table's last part.
        table: String,
        /// The rule that it breaks.
        error: NameError,
    },
    /// The name of an entry of `[auth.scopes]` is not a scope.
    #[error(
        "auth.scopes: \"{0}\" is not a scope; a scope is printable ASCII without spaces, quotation marks and backslashes, such as \"notes:read\""
    )]
    ScopeName(String),
    /// One mount may take more than half of the memory of all calls. All sizes are in bytes.
    #[error(
        "total-memory = \"{}\": a mount gets at most half of it, and {limit} is \"{}\"; lower {limit}, or set  total-memory = \"{}\"",
        show_bytes(*total),
        show_bytes(*most),
        show_bytes(*needed)
    )]
    TotalMemory {
        /// `total-memory`.
        total: u64,
        /// The path of the largest `memory`.
        limit: String,
        /// The largest `memory`.
        most: u64,
        /// The least `total-memory` for that limit.
        needed: u64,
    },
    /// Keys of `[serve]` do not fit together.
    #[error(transparent)]
    Serve(#[from] ServeProblem),
    /// The address of `[admin]` is not one of this machine.
    #[error(transparent)]
    Admin(#[from] AdminProblem),
    /// The keys of `[replicas]` do not fit together.
    #[error(transparent)]
    Replicas(#[from] ReplicasProblem),
    /// An entry of `[[trust.signers]]` cannot be used.
    #[error(transparent)]
    Trust(#[from] SignerProblem),
    /// An entry of `[[search.indexes]]` cannot be used.
    #[error(transparent)]
    Index(#[from] IndexProblem),
    /// The name of a secret has a character that names do not have.
    #[error("secrets: \"{0}\" is not the name of a secret; use letters, digits, \"-\" and \"_\"")]
    SecretName(String),
    /// The value does not say where the secret of this name is kept. It may be the secret: no message shows it.
    #[error(
        "secrets.{0}: expected {{ env = \"VARIABLE\" }} or {{ file = \"FILE\" }}; the secret itself is never written here"
    )]
    SecretSource(String),
    /// The path of a secret uses the placeholder for principals wrongly.
    #[error("secrets.{name}.file: {error}; for example  {name} = {{ file = \"secrets/{{principal}}/{name}\" }}")]
    SecretPath {
        /// The name of the secret.
        name: String,
        /// The rule that it breaks.
        error: PrincipalPathError,
    },
    /// The issuers of access tokens cannot be used.
    #[error("{0}")]
    Issuer(IssuerProblem),
    /// A person's answer for one read would let every client see the result.
    #[error(
        "{table}.cache-scope = \"public\": a read that a person allows is for one client only, and [{table}] asks; remove  cache-scope  or  ask  from [{table}]"
    )]
    PublicAnswers {
        /// The mount's table.
        table: String,
    },
    /// The base belongs to the names of skills.
    #[error(
        "{table}.uri: \"skill:\" begins the names of skills; choose another scheme, or write  uri = \"skill://{name}/\""
    )]
    SkillBase {
        /// The mount's table.
        table: String,
        /// The mount.
        name: MountName,
    },
    /// An entry asks first, and its mount asks nobody.
    #[error(
        "{table}.{kind}: an entry has  ask = true  and [{table}] has not; add  ask = true  to [{table}], or remove it from the entry"
    )]
    NobodyIsAsked {
        /// The mount's table.
        table: String,
        /// The kind of grant.
        kind: &'static str,
    },
}

/// ` = VALUE`
fn equals(found: &Option<Box<str>>) -> String {
    found.as_ref().map(|found| format!(" = {found}")).unwrap_or_default()
}

/// ` (DETAILS)`
fn in_brackets(details: &Option<Box<str>>) -> String {
    details.as_ref().map(|details| format!(" ({details})")).unwrap_or_default()
}

/// ` ; for example  EXAMPLE`
fn for_example(example: &Option<&str>) -> String {
    example.map(|example| format!("; for example  {example}")).unwrap_or_default()
}

/// A key of the file, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigKey {
    /// Where it stands. None if that is not known.
    pub position: Option<FilePosition>,
    /// `mounts.notes.limits.time`
    pub path: String,
}

impl ConfigKey {
    /// The position as the beginning of a message.
    fn before(&self) -> String {
        self.position.map(|position| format!("{position}: ")).unwrap_or_default()
    }
}

impl fmt::Display for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.before(), self.path)
    }
}

/// A position in the file. Line and column begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The cure of an unknown key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCure {
    /// The table takes this key, which is spelt almost alike.
    Nearest(String),
    /// No key is spelt alike. Holds all keys of the table.
    OneOf(Vec<String>),
}

impl fmt::Display for KeyCure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nearest(key) => write!(f, "did you mean \"{key}\"?"),
            Self::OneOf(keys) => write!(f, "the keys here are {}", keys.join(", ")),
        }
    }
}

/// Parses and deserializes a whole file.
///
/// # Errors
/// The first problem.
pub(crate) fn parse<'i, T: Deserialize<'i>>(source: &'i str) -> Result<T, Problem> {
    let table = DeTable::parse(source).map_err(|error| not_toml(source, &error))?;
    deserializer::deserialize(table.into_inner()).map_err(|error| value_problem(source, error))
}

/// The problem of a file that the parser refuses.
fn not_toml(source: &str, error: &toml::de::Error) -> Problem {
    let offset = error.span().map_or(0, |span| span.start);
    if let Some(UnquotedText { key, word }) = unquoted(source, offset) {
        let key = key.map(|key| format!("{} = ", text::excerpt(key, 80))).unwrap_or_default();
        let word = text::excerpt(word, 80);
        return Problem::Unquoted { position: position(source, offset), key, word };
    }
    // The message shows a line of the file. Nothing in that line may reach the terminal as more than text.
    let message = error.to_string();
    let lines = message.trim_end().lines().map(|line| text::excerpt(line, 200));
    // A scope is a key, and most scopes have a colon.
    let cure = (message.contains("unquoted key") || message.contains("key with no value"))
        .then(|| "a key with another character than letters, digits, \"-\" and \"_\" stands in quotation marks, such as  \"logs:read\" = {}".to_owned());
    let lines = lines.chain(cure);
    Problem::NotToml(lines.collect::<Vec<_>>().join("\n"))
}

/// The keys whose value is an array of tables, and what a message says if the value is another one.
const ARRAYS_OF_TABLES: [(&[&str], &str); 3] = [
    (&["allow"], "an array of tables; write [[allow]] in place of [allow]"),
    (&["deny"], "an array of tables; write [[deny]] in place of [deny]"),
    (&["auth", "issuers"], "an array of tables, such as [{ issuer = \"https://login.example\" }]"),
];

/// The problem of a value that cannot be deserialized.
fn value_problem(source: &str, error: DeserializeError) -> Problem {
    let DeserializeError { path, offset, found, found_type, reason } = error;
    if let ["secrets", name, ..] = path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return Problem::SecretSource(text::excerpt(name, 80));
    }
    let kind = match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mounts", _, kind, ..] => GrantKind::find(kind),
        _ => None,
    };
    let example = kind.map(|kind| kind.example);
    let key_at = |path: &[String]| ConfigKey {
        position: offset.map(|offset| position(source, offset)),
        path: path.iter().map(|part| text::excerpt(part, 80)).collect::<Vec<_>>().join("."),
    };
    match reason {
        Reason::Expected { expected, .. } if expected == "a table" && kind.is_none() => {
            Problem::NotATable { key: key_at(&path), found: found_type }
        }
        Reason::Expected { expected, details } => {
            let tables =
                ARRAYS_OF_TABLES.iter().find(|(own, _)| path.iter().eq(*own) && expected.starts_with("an array,"));
            let expected = tables.map_or(expected, |(_, expected)| (*expected).to_owned());
            Problem::Value { key: key_at(&path), found, expected, details, example }
        }
        Reason::Message(message) => Problem::BrokenRule { key: key_at(&path), found, message, example },
        Reason::UnknownKey { key, known } => {
            let is_mount = matches!(path.as_slice(), [mounts, _] if mounts == "mounts");
            let kinds = KINDS.iter().filter(|_| is_mount).map(|kind| kind.name);
            let cure = cure(&key, known.iter().copied().chain(kinds).collect());
            let path = [path, vec![key]].concat();
            Problem::UnknownKey { key: key_at(&path), cure }
        }
    }
}

/// The cure of an unknown key: the key of `known` that is spelt almost alike, or all of them.
fn cure(unknown: &str, mut known: Vec<&str>) -> KeyCure {
    match nearest(unknown, known.iter().copied()) {
        Some(near) => KeyCure::Nearest(near.to_owned()),
        None => {
            known.sort_unstable();
            KeyCure::OneOf(known.into_iter().map(str::to_owned).collect())
        }
    }
}

/// The position of an offset in bytes.
pub(super) fn position(source: &str, offset: usize) -> FilePosition {
    let before = source.get(..offset).unwrap_or(source);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    FilePosition { line: number(before.matches('\n').count()), column: number(column) }
}

/// A text of the file that has no quotation marks.
struct UnquotedText<'a> {
    /// The key in front of it. None in an array.
    key: Option<&'a str>,
    /// The text.
    word: &'a str,
}

/// The value at `offset`, if it is a word without quotation marks.
fn unquoted(source: &str, offset: usize) -> Option<UnquotedText<'_>> {
    let (before, after) = source.split_at_checked(offset)?;
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let start = before.rfind(['=', '[', ',', '{', '\n']).map_or(0, |delimiter| delimiter + 1);
    let end = offset + after.find([',', ']', '}', '#', '\n']).unwrap_or(after.len());
    let word = source.get(start..end)?.trim();
    let first = word.chars().next()?;
    let is_word = !word.contains(['"', '\'', '[', '{', '=']) && (first.is_alphabetic() || "~/.".contains(first));
    let line = source.get(line..start)?;
    let (key, _) = line.rsplit_once('=')?;
    let key = key.rsplit(['{', ',']).next().unwrap_or(key).trim();
    let key = line.ends_with('=').then_some(key);
    // A wrong number or date does not begin with a letter: the parser's message is better for it.
    (is_word && key != Some("")).then_some(UnquotedText { key, word })
}
