//! Which server answers, and which revisions it speaks.

use std::borrow::Cow;
use std::sync::LazyLock;

use rmcp::model::{Implementation, MetaObject, ProtocolVersion};
use serde_json::{Value, json};

/// The revisions that belljar speaks, oldest first. Not 2025-03-26: its servers have to take batches, and batches multiply
/// what one message may cost.
const REVISIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// Where a result of 2026-07-28 says which server gave it.
const KEY: &str = "io.modelcontextprotocol/serverInfo";

/// The name and version of this server.
pub(super) fn own() -> Implementation {
    Implementation::new("belljar", env!("CARGO_PKG_VERSION"))
}

/// The revisions that belljar speaks.
pub fn revisions() -> Cow<'static, [ProtocolVersion]> {
    Cow::Borrowed(&REVISIONS)
}

/// Says in the `_meta` of a result which server gave it, as 2026-07-28 has it. Older peers are told in the greeting.
pub(super) fn sign(meta: &mut Option<MetaObject>, is_modern: bool) {
    static OWN: LazyLock<Value> = LazyLock::new(|| json!({ "name": "belljar", "version": env!("CARGO_PKG_VERSION") }));
    if is_modern {
        meta.get_or_insert_default().insert(KEY.to_owned(), OWN.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_what_the_greeting_says() {
        let mut meta = None;
        sign(&mut meta, false);
        assert_eq!(meta, None);
        sign(&mut meta, true);
        assert_eq!(json!(meta), json!({ KEY: own() }));
    }
}
