//! The needs that a provider declares, in TOML, in a custom section of its component. A declaration grants nothing.
//! belljar shows it to the operator and builds the suggested commands from it.
//!
//! A provider cannot name anything of the host. It names the guest path of a directory, never the directory. It names a
//! variable, never a secret.

use std::fmt;

use toml::{Table, Value};

use super::kind_error::KindError;
use super::list::{GrantKind, KINDS};
use super::need::Need;
use crate::model::text;

/// The name of the custom section.
pub const SECTION: &str = "belljar:needs";

/// The largest section, in bytes: room for a few dozen declarations with their reasons.
const MAX_SECTION_BYTES: usize = 8 << 10;

/// The most declarations that one component may have.
const MAX_DECLARATIONS: usize = 32;

/// The most characters of a reason, of a thing and of an example.
const MAX_TEXT_CHARS: usize = 200;

/// Why a section is refused.
#[derive(Debug, thiserror::Error)]
pub enum NeedsError {
    /// The section is too large. Holds its size in bytes.
    #[error("it has {0} bytes; expected at most {MAX_SECTION_BYTES}")]
    TooLong(usize),
    /// The section is not UTF-8.
    #[error("it is not UTF-8")]
    NotText,
    /// The section is not TOML.
    #[error("line {line} is not TOML: {message}")]
    NotToml {
        /// The line of the error, counted from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// The section names an unknown kind of grant.
    #[error("unknown kind of grant \"{0}\"; the kinds are {kinds}", kinds = kind_names())]
    UnknownKind(String),
    /// The value of a kind is not an array of tables.
    #[error("\"{0}\": expected tables, each written below [[{0}]]")]
    NotTables(&'static str),
    /// The section has more than 32 declarations.
    #[error("it has more than {MAX_DECLARATIONS} declarations")]
    TooMany,
    /// A required key is missing.
    #[error("{0} is missing")]
    Missing(DeclarationKey),
    /// The key is unknown.
    #[error("{0} is not a key of a declaration")]
    UnknownKey(DeclarationKey),
    /// A text is empty, too long, or cannot be quoted.
    #[error("{0}: expected 1 to {MAX_TEXT_CHARS} characters, without quotation marks and controls")]
    Words(DeclarationKey),
    /// The value is not a string.
    #[error("{0}: expected a string")]
    NotAString(DeclarationKey),
    /// The value is not a boolean.
    #[error("{0}: expected true or false")]
    NotABoolean(DeclarationKey),
    /// An example names a secret of the operator.
    #[error("{0}: an example may not contain \"${{\", which names a secret of the operator")]
    Secret(DeclarationKey),
    /// The value does not name a thing of this kind.
    #[error("{0}: {1}")]
    Thing(DeclarationKey, KindError),
}

/// A key of a declaration, shown as `fs.path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationKey {
    kind: &'static str,
    name: String,
}

impl fmt::Display for DeclarationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.name)
    }
}

/// All needs that a provider declares: the required ones first, and then in the order of the kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(Vec<Need>);

impl Needs {
    /// Reads the bytes of the section. They are untrusted: whatever `docs/guide/providers.md` does not describe is refused.
    ///
    /// # Errors
    /// [`NeedsError`] for the first problem.
    pub fn parse(bytes: &[u8]) -> Result<Self, NeedsError> {
        if bytes.len() > MAX_SECTION_BYTES {
            return Err(NeedsError::TooLong(bytes.len()));
        }
        let source = std::str::from_utf8(bytes).map_err(|_| NeedsError::NotText)?;
        let table: Table = source.parse().map_err(|error: toml::de::Error| {
            let line = error.span().and_then(|span| source.get(..span.start)).unwrap_or_default().matches('\n').count();
            NeedsError::NotToml { line: line + 1, message: text::excerpt(error.message(), MAX_TEXT_CHARS) }
        })?;
        let mut all = Vec::new();
        for (name, value) in table {
            let kind = GrantKind::find(&name).ok_or_else(|| NeedsError::UnknownKind(text::excerpt(&name, 40)))?;
            let Value::Array(entries) = value else {
                return Err(NeedsError::NotTables(kind.name));
            };
            for entry in entries {
                let Value::Table(entry) = entry else {
                    return Err(NeedsError::NotTables(kind.name));
                };
                all.push(read_declaration(kind, entry)?);
                if all.len() > MAX_DECLARATIONS {
                    return Err(NeedsError::TooMany);
                }
            }
        }
        // Required needs come first; within both groups, the order of the kinds decides.
        let kind_index = |need: &Need| KINDS.iter().position(|kind| kind.name == need.kind);
        all.sort_by_key(|need| (need.optional, kind_index(need)));
        Ok(Self(all))
    }

    /// All needs, sorted.
    pub fn all(&self) -> &[Need] {
        &self.0
    }

    /// The declarations as TOML, one line for each kind. [`Needs::parse`] reads them back.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        for kind in KINDS {
            let of_kind = self.0.iter().filter(|need| need.kind == kind.name);
            let tables: Vec<Value> = of_kind.map(|need| written(kind, need).into()).collect();
            if !tables.is_empty() {
                out += &format!("{} = {}\n", kind.name, Value::Array(tables));
            }
        }
        out
    }

    /// True if the provider declares nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The kinds of the declared needs, each once.
    pub fn kinds(&self) -> Vec<&'static str> {
        let is_declared = |kind: &&GrantKind| self.0.iter().any(|need| need.kind == kind.name);
        KINDS.iter().filter(is_declared).map(|kind| kind.name).collect()
    }
}

/// The names of all kinds, separated by commas.
fn kind_names() -> String {
    KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

/// Reads one table below `[[KIND]]`.
fn read_declaration(kind: &GrantKind, mut entry: Table) -> Result<Need, NeedsError> {
    let at = |key: &str| DeclarationKey { kind: kind.name, name: key.to_owned() };
    let mut words = |key: &str| match entry.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) if text.is_empty() || !is_quotable(&text) => Err(NeedsError::Words(at(key))),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(NeedsError::NotAString(at(key))),
    };
    let what = match words(kind.need_schema.key)? {
        Some(what) => {
            Some((kind.need_schema.check)(&what).map_err(|error| NeedsError::Thing(at(kind.need_schema.key), error))?)
        }
        None if kind.need_schema.may_omit => None,
        None => return Err(NeedsError::Missing(at(kind.need_schema.key))),
    };
    let why = words("why")?;
    let example = if kind.need_schema.accepts_example { words("example")? } else { None };
    // An operator who pastes the suggested command would give the secret to the provider.
    if example.as_ref().is_some_and(|example| example.contains("${")) {
        return Err(NeedsError::Secret(at("example")));
    }
    let mut flag = |key: &str| match entry.remove(key) {
        None => Ok(false),
        Some(Value::Boolean(value)) => Ok(value),
        Some(_) => Err(NeedsError::NotABoolean(at(key))),
    };
    let optional = flag("optional")?;
    let any = kind.need_schema.accepts_any && flag("any")?;
    if let Some(unknown) = entry.keys().next() {
        return Err(NeedsError::UnknownKey(at(&text::excerpt(unknown, 40))));
    }
    Ok(Need { kind: kind.name, name: what, any, optional, example, reason: why })
}

/// One declaration, as [`read_declaration`] reads it.
fn written(kind: &GrantKind, need: &Need) -> Table {
    let mut table = Table::new();
    for (key, text) in [(kind.need_schema.key, &need.name), ("example", &need.example), ("why", &need.reason)] {
        table.extend(text.as_ref().map(|text| (key.to_owned(), Value::from(text.as_str()))));
    }
    for (key, flag) in [("any", need.any), ("optional", need.optional)] {
        table.extend(flag.then(|| (key.to_owned(), Value::from(true))));
    }
    table
}

/// True if `words` can be quoted on one line.
fn is_quotable(words: &str) -> bool {
    text::is_clean(words, MAX_TEXT_CHARS) && !words.contains(['"', '\\', '`'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Needs, NeedsError> {
        Needs::parse(text.as_bytes())
    }

    #[test]
    fn a_valid_declaration_is_parsed() {
        let needs = parse(
            "[[fs]]\npath = '/mail'\nwhy = 'mailboxes'\n[[env]]\nname = 'RECENT'\nexample = '20'\noptional = true\n[[http]]\norigin = 'https://API.example:443'\n[[http]]\nwhy = 'where WEB leads'\n",
        )
        .unwrap();
        let shown: Vec<String> = needs.all().iter().map(Need::describe).collect();
        assert!(shown.contains(&"fs \"/mail\": \"mailboxes\"".to_owned()), "{shown:?}");
        assert!(shown.contains(&"env \"RECENT\", optional".to_owned()), "{shown:?}");
        assert!(shown.contains(&"http \"https://api.example\"".to_owned()), "one spelling: {shown:?}");
        assert!(shown.contains(&"http: \"where WEB leads\"".to_owned()), "{shown:?}");
        assert_eq!(needs.kinds(), ["fs", "env", "http"]);
        let order: Vec<&str> = needs.all().iter().map(|need| need.kind).collect();
        assert_eq!(order, ["fs", "http", "http", "env"], "what is optional comes last");
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn declarations_are_written_and_read_back() {
        let needs = parse(
            "[[http]]\norigin = 'https://api.example'\nwhy = 'it is here'\n[[env]]\nname = 'A'\nexample = '20'\noptional = true\n[[fs]]\npath = '/a'\nany = true\n[[fs]]\npath = '/b'\noptional = true\n[[http]]\nwhy = 'more'\n"
        )
        .unwrap();
        let text = needs.to_toml();
        assert_eq!(parse(&text).unwrap(), needs, "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(Needs::default().to_toml(), "");
    }

    #[test]
    fn malformed_declarations_are_refused() {
        let many = "[[fs]]\npath = '/a'\n".repeat(MAX_DECLARATIONS + 1);
        let long = format!("[[fs]]\npath = '/a'\nwhy = '{}'", "x".repeat(MAX_TEXT_CHARS + 1));
        for (bad, says) in [
            ("fs = 3", "[[fs]]"),
            ("fs = [3]", "[[fs]]"),
            ("[fs]\npath = '/a'", "[[fs]]"),
            ("[[sf]]\npath = '/a'", &format!("unknown kind of grant \"sf\"; the kinds are {}", kind_names())),
            ("[[fs]]", "fs.path is missing"),
            ("[[fs]]\npath = 3", "expected a string"),
            ("[[fs]]\npath = 'a'", "begin"),
            ("[[fs]]\npath = '/a/../b'", "fs.path"),
            ("[[fs]]\npath = '/.ssh'", "fs.path"),
            ("[[fs]]\npath = '/a b'", "fs.path"),
            ("[[fs]]\npath = '/a=b'", "fs.path"),
            ("[[fs]]\npath = '/a;rm'", "fs.path"),
            ("[[fs]]\npath = '/a'\nhost = '~/.ssh'", "fs.host is not a key"),
            ("[[fs]]\npath = '/a'\nexample = '~/.ssh'", "fs.example is not a key"),
            ("[[fs]]\npath = '/a'\nany = 1", "true or false"),
            ("[[fs]]\npath = '/a'\nwhy = '\u{202e}'", "fs.why"),
            ("[[fs]]\npath = '/a'\nwhy = 'run \"x\"'", "fs.why"),
            ("[[fs]]\npath = '/a'\nwhy = ''", "fs.why"),
            ("[[env]]\nname = 'A=B'", "env.name"),
            ("[[env]]\nname = 'A'\nexample = '${secret:x}'", "names a secret of the operator"),
            ("[[env]]\nname = 'A'\nany = true", "env.any is not a key"),
            ("[[http]]\norigin = 'ftp://x'", "http.origin"),
            ("[[http]]\norigin = 'https://x.example/path'", "http.origin"),
            ("[[fs]\n", "line 1"),
            (&many, "more than"),
            (&long, "fs.why"),
        ] {
            let why = parse(bad).err().unwrap_or_else(|| panic!("{bad}")).to_string();
            assert!(why.contains(says), "{bad}: {why}");
        }
        assert!(Needs::parse(&[0xff]).unwrap_err().to_string().contains("UTF-8"));
        assert!(Needs::parse(&vec![b'#'; MAX_SECTION_BYTES + 1]).unwrap_err().to_string().contains("bytes"));
        assert!(parse(&format!("a = {}", "[".repeat(4000))).is_err());
    }
}
