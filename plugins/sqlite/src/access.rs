//! The authorizer: SQLite asks it for each access of each statement, also of those that virtual tables prepare for
//! themselves. It allows what reads.

use std::collections::HashSet;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// The pragmas that read, whatever their argument.
const READING: &[&str] = &[
    "collation_list",
    "compile_options",
    "database_list",
    "foreign_key_check",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "module_list",
    "pragma_list",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// The pragmas that read if they have no argument, and else write. Full-text indexes and R*Trees read the first two.
const READING_WITHOUT_ARGUMENT: &[&str] = &[
    "data_version",
    "page_size",
    "application_id",
    "auto_vacuum",
    "encoding",
    "freelist_count",
    "page_count",
    "schema_version",
    "user_version",
];

/// Functions that reach outside of the database or change it.
const DENIED: &[&str] = &["load_extension", "fts3_tokenizer", "optimize"];

/// Decides one access. `rtree_shadows` are the shadow tables of the R*Trees of the database, in lower case.
///
/// An R*Tree prepares all its statements when it is opened, also those that write to its shadow tables, and runs only those
/// that it needs. Preparing these is allowed. A statement of a caller that writes to a shadow table is refused by SQLite's
/// defensive mode, by `statement`, and by the file, which is open for reading only.
pub(crate) fn authorize(context: &AuthContext<'_>, rtree_shadows: &HashSet<String>) -> Authorization {
    let is_allowed = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            !DENIED.iter().any(|denied| denied.eq_ignore_ascii_case(function_name))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is_of = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(pragma_name));
            is_of(READING) || pragma_value.is_none() && is_of(READING_WITHOUT_ARGUMENT)
        }
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. } => {
            !rtree_shadows.is_empty() && rtree_shadows.contains(&table_name.to_ascii_lowercase())
        }
        _ => false,
    };
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_is_allowed() {
        let shadows = HashSet::from(["tree_node".to_owned()]);
        let allows = |action| {
            let context = AuthContext { action, database_name: Some("main"), accessor: None };
            authorize(&context, &shadows) == Authorization::Allow
        };
        let pragma = |pragma_name, pragma_value| AuthAction::Pragma { pragma_name, pragma_value };
        assert!(allows(pragma("data_version", None)) && allows(pragma("table_xinfo", Some("t"))));
        for (name, value) in [
            ("schema_version", Some("7")),
            ("page_size", Some("512")),
            ("writable_schema", None),
            ("journal_mode", None),
        ] {
            assert!(!allows(pragma(name, value)), "{name}");
        }
        assert!(allows(AuthAction::Insert { table_name: "Tree_node" }));
        assert!(!allows(AuthAction::Insert { table_name: "tree" }));
        assert!(!allows(AuthAction::Update { table_name: "sqlite_schema", column_name: "sql" }));
        assert!(!allows(AuthAction::Attach { filename: "x.db" }));
        assert!(!allows(AuthAction::Function { function_name: "FTS3_Tokenizer" }));
        assert!(!allows(AuthAction::DropTable { table_name: "tree_node" }));
    }
}
