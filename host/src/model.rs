//! Plain data that every module shares: what a provider offers, what a call costs, how it failed.
//!
//! Knows nothing of WebAssembly, MCP, files or sockets. Everything here may cross the line between the gateway and
//! the sandbox (and, one day, a process boundary), so nothing here holds a handle.

pub mod command;
pub mod error;
pub mod guard;
pub mod limits;
pub mod meta;
pub mod reference;
pub mod seal;
pub mod template;
pub mod text;
mod trail;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use error::{Blame, Fault, Limit, ReadError};
pub use guard::Guard;
pub use limits::Limits;
pub use template::{Completing, Suggestions};
pub use trail::{Consent, Decision, MAX_TRAIL, Trail, Verdict};

/// The name of a mount: `[a-z0-9][a-z0-9-]*`, at most 64 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountName(Arc<str>);

/// The longest mount name, in bytes: what fits a DNS label, a file stem and a log column.
pub const MAX_MOUNT_NAME: usize = 64;

impl MountName {
    /// Checks `name`.
    ///
    /// # Errors
    /// Says which rule `name` breaks.
    pub fn new(name: &str) -> Result<Self, String> {
        let shape =
            "a mount name is made of a-z, 0-9 and \"-\", begins with a letter or digit, and has at most 64 characters";
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = !name.is_empty() && name.len() <= MAX_MOUNT_NAME && name.chars().all(good) && !name.starts_with('-');
        if !fits && Guard::Name.is_on() {
            return Err(format!("\"{}\" is not a mount name: {shape}", text::excerpt(name, 80)));
        }
        Ok(Self(name.into()))
    }

    /// The name that a component file gives its mount: its stem in lower case, with `_` as `-`.
    ///
    /// # Errors
    /// When the stem has other characters; the error says how to name the mount instead.
    pub fn from_stem(stem: &str) -> Result<Self, String> {
        Self::new(&stem.to_ascii_lowercase().replace('_', "-")).map_err(|_| {
            format!(
                "the file name \"{}.wasm\" does not make a mount name; rename the file to letters, digits and \"-\", or mount it under a name of its own: [mounts.NAME] component = \"{}.wasm\"",
                text::excerpt(stem, 80),
                text::excerpt(stem, 80)
            )
        })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The SHA-256 of a component's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// As tables show it: enough digits to tell it from any other on one machine.
    pub fn short(&self) -> String {
        let hex = self.hex();
        format!("sha256:{}", hex.get(..12).unwrap_or(&hex))
    }

    /// Hashes `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// 64 hexadecimal digits, without a prefix.
    pub fn hex(&self) -> String {
        let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

impl std::str::FromStr for Digest {
    type Err = String;

    /// Reads what [`fmt::Display`] writes, and nothing else.
    fn from_str(shown: &str) -> Result<Self, String> {
        let digits = shown.strip_prefix("sha256:").unwrap_or_default().as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(value(*high)? << 4 | value(*low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(Self)
            .ok_or_else(|| format!("\"{}\" is not \"sha256:\" and 64 hexadecimal digits", text::excerpt(shown, 80)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One export of a provider, with its arguments: what a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `describe`.
    Describe,
    /// `list-resources`, from the start or from one of the provider's own cursors.
    List {
        /// The provider's cursor, as it gave it.
        cursor: Option<String>,
    },
    /// `list-templates`.
    Templates,
    /// `read`.
    Read {
        /// A checked relative reference ([`reference::check`]).
        reference: String,
    },
    /// `complete`, of the optional interface `completion`.
    Complete(Completing),
    /// `catalog-revision`, of the optional interface `revisions`.
    CatalogRevision,
    /// `resource-revisions`, of the optional interface `revisions`.
    Revisions {
        /// Checked relative references.
        references: Vec<String>,
    },
}

impl Operation {
    /// The export's name, for records and errors.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Describe => "describe",
            Self::List { .. } => "list-resources",
            Self::Templates => "list-templates",
            Self::Read { .. } => "read",
            Self::Complete(_) => "complete",
            Self::CatalogRevision => "catalog-revision",
            Self::Revisions { .. } => "resource-revisions",
        }
    }

    /// The reference that is read, if this is a read.
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Read { reference } => Some(reference),
            _ => None,
        }
    }
}

/// What a provider answered: one variant per [`Operation`], exactly as the guest gave it, unchecked.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To [`Operation::Describe`].
    Description(Description),
    /// To [`Operation::List`].
    Page(Page),
    /// To [`Operation::Templates`].
    Templates(Vec<Template>),
    /// To [`Operation::Read`].
    Reading(Reading),
    /// To [`Operation::Complete`].
    Suggestions(Suggestions),
    /// To [`Operation::CatalogRevision`].
    Revision(String),
    /// To [`Operation::Revisions`]: one for each reference that was asked for, in order, if the provider keeps to it.
    Revisions(Vec<Result<String, ReadError>>),
}

impl Answer {
    /// What it is when this answers another operation than the one that was asked for: a mistake of belljar's own.
    pub fn to_another() -> ReadError {
        ReadError::Internal("an answer to another operation".to_owned())
    }
}

/// How a provider describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// For people.
    pub title: Option<String>,
    /// The provider's own version.
    pub version: Option<String>,
    /// What it offers.
    pub description: Option<String>,
}

/// Who a resource is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints about a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Annotations {
    /// Who it is for; empty: not said.
    pub audience: Vec<Role>,
    /// From 0 (optional) to 1 (effectively required).
    pub priority: Option<f64>,
    /// RFC 3339.
    pub last_modified: Option<String>,
}

/// A picture for a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// The picture's MIME type.
    pub mime_type: Option<String>,
    /// `48x48`, `any`.
    pub sizes: Vec<String>,
}

/// `_meta` entries: names with JSON text.
pub type Meta = Vec<(String, String)>;

/// One entry of a listing. `reference` is relative in what a guest gives and absolute after
/// the catalog checked it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Where it is.
    pub reference: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people and models.
    pub description: Option<String>,
    /// MIME type of its contents.
    pub mime_type: Option<String>,
    /// Bytes.
    pub size: Option<u64>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Further data for the client.
    pub meta: Meta,
}

/// A family of resources named by an RFC 6570 template; relative or absolute as [`Resource::reference`] is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// RFC 6570.
    pub template: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people and models.
    pub description: Option<String>,
    /// MIME type, when all have the same.
    pub mime_type: Option<String>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Further data for the client.
    pub meta: Meta,
}

/// One page of a provider's listing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The entries.
    pub resources: Vec<Resource>,
    /// The provider's cursor for what follows; none: this was the last.
    pub next: Option<String>,
}

/// Text or bytes.
#[derive(Clone, PartialEq, Eq)]
pub enum Body {
    /// Valid UTF-8.
    Text(String),
    /// Anything.
    Blob(Vec<u8>),
}

impl Body {
    /// Bytes, before any encoding.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self, Self::Text(_)) { "text" } else { "blob" };
        write!(f, "{kind} of {} bytes", self.len())
    }
}

/// One piece of what a read gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// Relative from a guest, absolute after the gateway checked it.
    pub reference: String,
    /// MIME type.
    pub mime_type: Option<String>,
    /// The body.
    pub body: Body,
    /// Further data for the client.
    pub meta: Meta,
}

/// What a read gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// At least one piece.
    pub contents: Vec<Contents>,
    /// For how long the provider says that it may be served again.
    pub fresh_for: Option<Duration>,
}

/// What one call used. Comes back with every outcome, good or bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fuel: about one unit an instruction.
    pub fuel: u64,
    /// Wall time in the sandbox, from instantiation to the dropped store.
    pub time: Duration,
    /// Processor time, the host's part of the call included.
    pub cpu: Duration,
    /// Peak bytes over all linear memories and tables together.
    pub memory: u64,
    /// Bytes of the answer.
    pub bytes: u64,
}

impl Usage {
    /// Adds what another call used: sums, but for memory, of which the larger counts.
    pub fn add(&mut self, other: &Self) {
        self.fuel = self.fuel.saturating_add(other.fuel);
        self.time = self.time.saturating_add(other.time);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.max(other.memory);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Everything that comes back from the sandbox.
#[derive(Debug)]
pub struct Outcome {
    /// The answer, or why there is none.
    pub result: Result<Answer, ReadError>,
    /// What it cost.
    pub usage: Usage,
    /// What it was allowed and refused.
    pub trail: Trail,
}

impl Outcome {
    /// Of a call that used nothing.
    pub fn failed(error: ReadError) -> Self {
        Self { result: Err(error), usage: Usage::default(), trail: Trail::default() }
    }
}

/// Who asks: which connection, and what the transport and the client say of themselves. Claims, until authentication exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// `stdio`, `http` or `cli`.
    pub transport: &'static str,
    /// The client's name and version, sanitised.
    pub client: Option<Arc<str>>,
    /// The connection, or the session of an older client; 0 is belljar itself. Never shown: callers are told apart by it.
    pub peer: u64,
}

#[cfg(test)]
mod tests;
