//! The path of the endpoint, and the headers that MCP defines.

use http::HeaderName;

/// The only path that the server has.
pub const PATH: &str = "/mcp";

/// The header that names a session.
pub(super) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header that names a revision.
pub(super) static REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The header that repeats the method of a request.
pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The header that repeats the URI of a resource or the name of a tool.
pub(super) static NAME: HeaderName = HeaderName::from_static("mcp-name");
