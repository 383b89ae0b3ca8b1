//! The path of the endpoint, the headers that MCP defines, and how a header is read.

use http::{HeaderMap, HeaderName};

/// The path of the endpoint.
pub use crate::config::serve::MCP_PATH as PATH;

/// The header that names a session.
pub(super) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header that names a revision.
pub(super) static REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The header that repeats the method of a request.
pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The header that repeats the URI of a resource or the name of a tool.
pub(super) static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The value of a header that occurs exactly once.
pub(super) fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut all = headers.get_all(name).into_iter();
    all.next().filter(|_| all.next().is_none()).map(|value| value.as_bytes())
}
