//! What the program reports.

use serde::{Deserialize, Serialize};

use crate::{RevokedList, SearchResult, Uploaded};

/// One line on standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// The state of the wall, before anything is fetched. Empty: all of it stands.
    Wall {
        /// What the kernel could not restrict.
        missing: Vec<String>,
    },
    /// The download or the upload has more bytes. At most a few each second.
    Progress(Progress),
    /// The result of a resolve request.
    Resolved(Box<Resolved>),
    /// The result of a download request.
    Downloaded(Downloaded),
    /// The result of a tags request.
    Tags(Tags),
    /// The result of an upload request.
    Uploaded(Uploaded),
    /// The result of a request for revoked versions.
    Revoked(RevokedList),
    /// The result of a search request.
    Found(SearchResult),
    /// The request failed. No other result follows.
    Failed(Failure),
}

/// See [`Event::Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The bytes of the component that are on disk, those of an earlier download included. For an upload: those that the
    /// registry has.
    pub bytes: u64,
    /// The bytes of all. `None` if the server does not say.
    pub total: Option<u64>,
}

/// What a source is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// The source in its full spelling: `ghcr.io/acme/tides:1.2`, or an HTTPS URL without its digest.
    pub reference: String,
    /// The source by digest, for [`crate::DownloadRequest::source`]: `ghcr.io/acme/tides@sha256:HEX`, or an HTTPS URL with its
    /// digest.
    pub pinned: String,
    /// The digest of the manifest. `None` for a file.
    pub manifest_digest: Option<String>,
    /// The digest of the component, or of the bundle.
    pub component_digest: String,
    /// The size of the component. `None` if the server of a file does not say.
    pub size: Option<u64>,
    /// `org.opencontainers.image.title`.
    pub title: Option<String>,
    /// `org.opencontainers.image.version`.
    pub version: Option<String>,
    /// `org.opencontainers.image.description`.
    pub description: Option<String>,
    /// `org.opencontainers.image.licenses`.
    pub licence: Option<String>,
    /// `org.opencontainers.image.source`, or the `url` if there is none.
    pub homepage: Option<String>,
    /// The exports of the component, by its publisher's word: the component itself is not read yet.
    pub exports: Vec<String>,
    /// The imports, as `exports`.
    pub imports: Vec<String>,
    /// The declared needs of the component as TOML, as `exports`. Not cleaned: whoever shows it has to parse it. At most
    /// [`crate::MAX_NEEDS`] characters. `None` if the publisher says nothing.
    pub needs: Option<String>,
    /// The WIT world that the component targets, as `exports`.
    pub target: Option<String>,
    /// The valid signatures. Those of trusted signers come first.
    pub signatures: Vec<Signature>,
    /// The signatures that do not count.
    pub refused: Vec<RefusedSignature>,
    /// The signed statements about the build.
    pub provenance: Vec<Provenance>,
    /// The minisign signature beside a file. It is checked after the download.
    pub minisign: Option<AnnouncedMinisign>,
    /// What the publisher revoked: each entry of its list, whatever version it is about.
    #[serde(default)]
    pub revoked: RevokedList,
}

/// A valid signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// How the signer is known.
    pub kind: SignatureKind,
    /// The identity in the certificate; for a key, `sha256:HEX` of its DER form; for minisign, its key number.
    pub signer: String,
    /// The issuer in the certificate. `None` for keys.
    pub issuer: Option<String>,
    /// The time that a log or a time-stamping authority confirms, in seconds since 1970. `None` if none does.
    pub time: Option<i64>,
    /// Whether the signer is trusted for this source.
    pub standing: Standing,
}

/// How a signer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureKind {
    /// By a Sigstore certificate.
    Keyless,
    /// By a public key of a rule.
    Key,
    /// By a minisign key of a rule.
    Minisign,
}

/// Whether a signer is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// A rule names the signer. Holds the scope of the rule.
    Trusted(String),
    /// No rule applies to this source.
    NoRule,
}

/// A signature that does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSignature {
    /// The signer, if the signature is valid and its signer is not trusted. Otherwise nobody proves who signed.
    pub signer: Option<String>,
    /// The issuer, as `signer`.
    pub issuer: Option<String>,
    /// Why it does not count.
    pub reason: String,
}

/// A signed statement about the build (SLSA provenance).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The builder.
    pub builder: Option<String>,
    /// The repository of the source code.
    pub source: Option<String>,
    /// The commit of the source code.
    pub commit: Option<String>,
    /// Who signed the statement.
    pub signed_by: Signature,
}

/// A minisign signature that is not checked yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedMinisign {
    /// The key number in the signature, if a rule for this source has this key. The download then requires it.
    pub trusted_key: Option<String>,
    /// The comment that the signature covers.
    pub comment: String,
}

/// See [`Event::Downloaded`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downloaded {
    /// The name of the file in the directory: `HEX.wasm`, or `HEX.bundle`.
    pub file: String,
    /// Its size.
    pub size: u64,
    /// True if the file was already there with its digest, and nothing was fetched.
    pub cached: bool,
    /// The valid minisign signature of a file.
    pub signature: Option<Signature>,
}

/// See [`Event::Tags`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tags {
    /// The tags, in the registry's order. Not the tags of signatures.
    pub tags: Vec<String>,
    /// True if the registry has more.
    pub more: bool,
}

/// See [`Event::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure it is, for the program.
    pub kind: FailureKind,
    /// What is wrong: one line, lower case, no full stop.
    pub problem: String,
    /// What to do: one line, lower case, no full stop.
    pub cure: String,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The request, or the source in it, is malformed.
    Request,
    /// The wall cannot be raised.
    Wall,
    /// The server cannot be reached, or breaks off.
    Network,
    /// The server has no such thing.
    NotFound,
    /// The server wants other credentials.
    Denied,
    /// The server sends to an address that is not allowed.
    Address,
    /// The server takes too long.
    Time,
    /// Something is larger than its bound.
    Size,
    /// The server answers what it must not: another digest, not JSON, not a component.
    Content,
    /// There is no signature that counts.
    Signature,
    /// The directory or a file in it cannot be used.
    Directory,
    /// The tag holds other content.
    Exists,
}
