//! The server's name, version and protocol revisions.

use std::borrow::Cow;
use std::sync::LazyLock;

use rmcp::model::{Implementation, MetaObject, ProtocolVersion};
use serde_json::{Value, json};

use super::era::Era;

/// The revisions that belljar supports, oldest first. 2025-03-26 is missing: its servers must accept batches, and a
/// batch multiplies the cost of one message.
const REVISIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The `_meta` key that names the server in a result of 2026-07-28.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The name and version of this server.
pub(super) fn implementation() -> Implementation {
    Implementation::new("belljar", env!("CARGO_PKG_VERSION"))
}

/// The revisions that belljar supports, oldest first.
pub fn revisions() -> Cow<'static, [ProtocolVersion]> {
    Cow::Borrowed(&REVISIONS)
}

/// The `_meta` of a result that has nothing else in it, as JSON: the server's name and version.
pub(super) fn server_meta() -> &'static str {
    static META: LazyLock<String> = LazyLock::new(|| {
        let mut meta = None;
        add_server_info(&mut meta, Era::Stateless);
        serde_json::to_string(&meta).unwrap_or_else(|_| "{}".to_owned())
    });
    &META
}

/// Adds the server's name and version to the `_meta` of a result, as 2026-07-28 requires. Older clients have both from
/// the answer to `initialize`.
pub(super) fn add_server_info(meta: &mut Option<MetaObject>, era: Era) {
    static OWN: LazyLock<Value> = LazyLock::new(|| json!({ "name": "belljar", "version": env!("CARGO_PKG_VERSION") }));
    if era.is_stateless() {
        meta.get_or_insert_default().insert(SERVER_INFO_KEY.to_owned(), OWN.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_the_same_server_as_the_answer_to_initialize() {
        let mut meta = None;
        add_server_info(&mut meta, Era::Session);
        assert_eq!(meta, None);
        add_server_info(&mut meta, Era::Stateless);
        assert_eq!(json!(meta), json!({ SERVER_INFO_KEY: implementation() }));
    }
}
