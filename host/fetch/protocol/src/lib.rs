//! The messages between belljar and `belljar-fetch`, the program that fetches and verifies components. Only types: this
//! crate opens no file and no connection.
//!
//! belljar starts `belljar-fetch`, writes one [`Request`] as one line of JSON to its standard input, and reads lines of JSON
//! from its standard output, each an [`Event`]. The last event is the result. The exit code is 0 after a result, and 1 after
//! [`Event::Failed`]. Each request is a process of its own, and no process keeps state for the next one.
//!
//! All texts in events are cleaned: bounded, one line, no control characters. They still come from strangers.

mod event;
mod kind;
mod request;
mod revoked;
mod search;
mod trust;
mod upload;

pub use event::{
    AnnouncedMinisign, Downloaded, Event, Failure, FailureKind, Progress, Provenance, RefusedSignature, Resolved,
    Signature, SignatureKind, Standing, Tags,
};
pub use kind::ArtifactKind;
pub use request::{DownloadRequest, Limits, Network, Request, ResolveRequest, TagsRequest, Task, Wall};
pub use revoked::{REVOKED_TAG, REVOKED_TYPE, RevokedEntry, RevokedList, RevokedRequest, RevokedVersions};
pub use search::{FoundComponent, SearchIndex, SearchRequest, SearchResult};
pub use trust::{Identity, Required, Root, Signer, Trust, TrustRule};
pub use upload::{UploadRequest, Uploaded};

/// The version of the messages. The program refuses a request of another version.
pub const PROTOCOL: u32 = 1;

/// The most characters of declared needs: one more than a component may declare, so that too many are noticed.
pub const MAX_NEEDS: usize = 8 * 1024 + 1;

/// The most bytes of a request, and of an event.
pub const MAX_LINE: usize = 1024 * 1024;
