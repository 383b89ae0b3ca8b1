//! Which statements a read-only connection may send.
//!
//! The server takes one statement for each prepared one, so its first word says what it is. The server refuses to write in a
//! read-only transaction, whatever the statement is. Some functions act beyond the transaction, and the server lets them: it
//! writes large objects (before PostgreSQL 16), sends notifications, ends other sessions, connects elsewhere. Statements with
//! their names are refused, also in strings; so are functions that run SQL from strings, and names in escapes.
//!
//! A function of the database's owner can do whatever its author wanted. The rights of the user decide about that.

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement<'a> {
    /// It reads, or sets something harmless. Empty statements too.
    Reads,
    /// It begins or ends a transaction that cannot write.
    Transaction,
    /// It is not allowed. Holds its first word, or its beginning.
    Refused(&'a str),
}

/// The first words of statements that cannot leave a read-only transaction.
const READING: [&str; 10] =
    ["CLOSE", "DECLARE", "EXPLAIN", "FETCH", "MOVE", "SELECT", "SHOW", "TABLE", "VALUES", "WITH"];

/// The first words of queries.
const QUERIES: [&str; 4] = ["SELECT", "TABLE", "VALUES", "WITH"];

/// The words that may follow BEGIN and START TRANSACTION. WRITE is missing.
const OF_BEGIN: [&str; 12] = [
    "COMMITTED",
    "DEFERRABLE",
    "ISOLATION",
    "LEVEL",
    "NOT",
    "ONLY",
    "READ",
    "REPEATABLE",
    "SERIALIZABLE",
    "TRANSACTION",
    "UNCOMMITTED",
    "WORK",
];

/// The words that may follow COMMIT, END, ROLLBACK and ABORT.
const OF_END: [&str; 5] = ["AND", "CHAIN", "NO", "TRANSACTION", "WORK"];

/// The settings that a guest may set. Client libraries set some of them when they connect.
const SETTINGS: [&str; 14] = [
    "APPLICATION_NAME",
    "BYTEA_OUTPUT",
    "CLIENT_ENCODING",
    "CLIENT_MIN_MESSAGES",
    "DATESTYLE",
    "EXTRA_FLOAT_DIGITS",
    "INTERVALSTYLE",
    "JIT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "SEARCH_PATH",
    "TIMEZONE",
];

/// Functions that act although the transaction is read-only, or that run SQL from strings. With `*`: all names that begin so.
const ACTING: [&str; 40] = [
    "connectby",
    "crosstab*",
    "cursor_to_xml*",
    "dblink*",
    "lo_creat",
    "lo_create",
    "lo_export",
    "lo_from_bytea",
    "lo_import",
    "lo_open",
    "lo_put",
    "lo_truncate",
    "lo_truncate64",
    "lo_unlink",
    "lowrite",
    "pg_advisory_*",
    "pg_backup_*",
    "pg_cancel_backend",
    "pg_copy_*",
    "pg_create_*",
    "pg_drop_*",
    "pg_file_*",
    "pg_import_system_collations",
    "pg_log_*",
    "pg_logical_emit_message",
    "pg_notify",
    "pg_promote",
    "pg_reload_conf",
    "pg_replication_*",
    "pg_rotate_logfile*",
    "pg_start_backup",
    "pg_stat_reset*",
    "pg_stat_statements_reset",
    "pg_stop_backup",
    "pg_switch_wal",
    "pg_terminate_backend",
    "pg_try_advisory_*",
    "query_to_xml*",
    "ts_rewrite",
    "ts_stat",
];

/// The first word of `sql` that names a function which acts, or an escape that could spell such a name.
fn acting(sql: &str) -> Option<&str> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    let is_acting = |word: &&str| {
        ACTING.iter().any(|name| match name.strip_suffix('*') {
            Some(start) => word.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start)),
            None => word.eq_ignore_ascii_case(name),
        })
    };
    let escape = ["U&\"", "u&\"", "U&'", "u&'"].into_iter().find_map(|escape| sql.find(escape));
    let named = sql.split(|c| !is_of_word(c)).find(is_acting);
    named.or_else(|| escape.and_then(|at| sql.get(at..at + 2)))
}

/// Skips white space and comments (PostgreSQL 4.1.5). Comments nest.
fn skip_blank(mut rest: &str) -> &str {
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find(['\n', '\r']).and_then(|end| comment.get(end..)).unwrap_or("");
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = after_comment(comment);
        } else {
            return rest;
        }
    }
}

/// What follows a comment whose `/*` is removed.
fn after_comment(comment: &str) -> &str {
    let bytes = comment.as_bytes();
    let (mut at, mut depth) = (0, 1u32);
    while depth > 0 {
        match bytes.get(at..at + 2) {
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(_) => at += 1,
            None => return "",
        }
    }
    comment.get(at..).unwrap_or("")
}

/// Splits the first word off. Empty if `rest` begins with something else.
fn word(rest: &str) -> (&str, &str) {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
    rest.split_at_checked(end).unwrap_or((rest, ""))
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|own| own.eq_ignore_ascii_case(word))
}

/// True if only these words follow, and perhaps one semicolon.
fn has_only(mut rest: &str, words: &[&str]) -> bool {
    loop {
        rest = skip_blank(rest);
        if let Some(after) = rest.strip_prefix(';') {
            return skip_blank(after).is_empty();
        }
        if rest.is_empty() {
            return true;
        }
        rest = rest.strip_prefix(',').map_or(rest, skip_blank);
        let (next, after) = word(rest);
        if !is_one_of(next, words) {
            return false;
        }
        rest = after;
    }
}

/// True if `rest`, which follows SET, sets a harmless setting.
fn sets_harmless(rest: &str) -> bool {
    let (mut name, mut rest) = word(skip_blank(rest));
    if is_one_of(name, &["SESSION", "LOCAL"]) {
        (name, rest) = word(skip_blank(rest));
    }
    if name.eq_ignore_ascii_case("TIME") {
        return word(skip_blank(rest)).0.eq_ignore_ascii_case("ZONE");
    }
    is_one_of(name, &SETTINGS)
}

/// True if `rest`, which follows EXPLAIN, is a query. The server runs `EXPLAIN ANALYZE CREATE TABLE AS` in read-only
/// transactions, and `SELECT INTO` is the same statement.
fn explains_query(mut rest: &str) -> bool {
    if rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word.eq_ignore_ascii_case("INTO")) {
        return false;
    }
    rest = skip_blank(rest);
    if let Some((options, after)) = rest.strip_prefix('(').and_then(|options| options.split_once(')')) {
        // Options have no parentheses. A query in parentheses begins with one of the words below.
        if !is_one_of(word(skip_blank(options)).0, &QUERIES) && !options.trim_start().starts_with('(') {
            rest = skip_blank(after);
        }
    }
    loop {
        let (first, after) = word(rest);
        if !is_one_of(first, &["ANALYZE", "ANALYSE", "VERBOSE"]) {
            break;
        }
        rest = skip_blank(after);
    }
    while let Some(inner) = rest.strip_prefix('(') {
        rest = skip_blank(inner);
    }
    is_one_of(word(rest).0, &QUERIES)
}

/// What the statement `sql` is.
pub(super) fn classify(sql: &str) -> Statement<'_> {
    let mut rest = skip_blank(sql);
    // The server skips empty statements.
    while let Some(after) = rest.strip_prefix(';') {
        rest = skip_blank(after);
    }
    if rest.is_empty() {
        return Statement::Reads;
    }
    // A query may stand in parentheses.
    while let Some(inner) = rest.strip_prefix('(') {
        rest = skip_blank(inner);
    }
    let (first, after) = word(rest);
    let is = |name: &str| first.eq_ignore_ascii_case(name);
    let is_transaction = match () {
        () if is("BEGIN") || is("START") => has_only(after, &OF_BEGIN),
        () if is("COMMIT") || is("END") || is("ROLLBACK") || is("ABORT") => has_only(after, &OF_END),
        () => false,
    };
    match () {
        () if is_transaction => Statement::Transaction,
        () if is("EXPLAIN") && !explains_query(after) => Statement::Refused(first),
        () if is_one_of(first, &READING) || (is("SET") && sets_harmless(after)) => {
            acting(after).map_or(Statement::Reads, Statement::Refused)
        }
        () if first.is_empty() => Statement::Refused(rest.get(..rest.ceil_char_boundary(1)).unwrap_or(rest)),
        () => Statement::Refused(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_statements_are_recognised() {
        for reads in [
            "",
            ";",
            "  -- nothing",
            "select 1",
            "SELECT 1;",
            "(select 1) union (select 2)",
            "((values (1)))",
            "/* a /* nested */ comment */ with x as (select 1) table x",
            "--c\nShow all",
            "explain analyze select 1",
            "explain (analyze, buffers) with x as (table t) table x",
            "explain (select 1) union (select 2)",
            "explain verbose ((select 1))",
            "table t",
            "set datestyle to iso",
            "SET SESSION client_encoding = 'UTF8'",
            "set local time zone 'UTC'",
            "declare c cursor for select 1",
            "fetch 10 from c",
            "\u{c}select 1",
            "select(1)",
            "select'a'",
            "select$1",
        ] {
            let expected = if reads == "select$1" { Statement::Refused("select$1") } else { Statement::Reads };
            assert_eq!(classify(reads), expected, "{reads}");
        }
    }

    #[test]
    fn transactions_cannot_write() {
        for transaction in [
            "begin",
            "BEGIN;",
            "begin read only",
            "begin transaction isolation level repeatable read, read only",
            "start transaction isolation level serializable read only deferrable",
            "commit",
            "rollback and no chain",
            "end work ;",
            "abort -- why",
        ] {
            assert_eq!(classify(transaction), Statement::Transaction, "{transaction}");
        }
        for refused in [
            "begin read write",
            "start transaction read write",
            "begin; delete from t",
            "commit; begin read write",
            "begin isolation level serializable read /**/ write",
            "commit prepared 'x'",
            "rollback to savepoint a",
        ] {
            assert!(matches!(classify(refused), Statement::Refused(_)), "{refused}");
        }
    }

    #[test]
    fn functions_that_act_are_refused_wherever_they_stand() {
        for (refused, name) in [
            ("select lo_create(1)", "lo_create"),
            ("select LO_PUT(1, 0, 'x')", "LO_PUT"),
            ("select \"pg_notify\"('a', 'b')", "pg_notify"),
            ("select pg_catalog.pg_terminate_backend(pid) from pg_stat_activity", "pg_terminate_backend"),
            ("with x as (select dblink_exec('...', 'delete from t')) table x", "dblink_exec"),
            ("select query_to_xml('select lo_' || 'create(1)', true, true, '')", "query_to_xml"),
            ("select U&\"lo\\005fcreate\"(1)", "U&"),
            ("explain analyze select pg_advisory_lock(1)", "pg_advisory_lock"),
        ] {
            assert_eq!(classify(refused), Statement::Refused(name), "{refused}");
        }
        for reads in ["select lo_orderkey from lineorder", "select 'hello_create'", "select u & 1", "table pg_notifyx"]
        {
            assert_eq!(classify(reads), Statement::Reads, "{reads}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (refused, first) in [
            ("insert into t values (1)", "insert"),
            ("set transaction read write", "set"),
            ("set transaction_read_only = off", "set"),
            ("set session characteristics as transaction read write", "set"),
            ("set default_transaction_read_only to off", "set"),
            ("set \"default_transaction_read_only\" to off", "set"),
            ("set role admin", "set"),
            ("set session authorization x", "set"),
            ("set statement_timeout = 0", "set"),
            ("reset all", "reset"),
            ("discard all", "discard"),
            ("do $$begin commit; end$$", "do"),
            ("call p()", "call"),
            ("copy t to program 'sh'", "copy"),
            ("prepare x as insert into t values (1)", "prepare"),
            ("execute x", "execute"),
            ("lock t", "lock"),
            ("listen x", "listen"),
            ("savepoint a", "savepoint"),
            ("/* select */ delete from t", "delete"),
            ("/* /* */ select 1 */ delete from t", "delete"),
            ("--\rdelete from t", "delete"),
            ("\u{a0}select 1", "\u{a0}select"),
            ("\"select\" 1", "\""),
            ("selectx", "selectx"),
            ("sélect 1", "sélect"),
            ("\\copy", "\\"),
            ("; delete from t", "delete"),
            (";/* */;set default_transaction_read_only = off", "set"),
            ("explain analyze create table a as select 1", "explain"),
            ("explain (analyze) create table a as select 1", "explain"),
            ("explain (analyze, format json) select 1 into a", "explain"),
            ("explain analyze verbose execute p", "explain"),
            ("explain insert into t values (1)", "explain"),
            ("explain ((analyze)) create table a as select 1", "explain"),
        ] {
            assert_eq!(classify(refused), Statement::Refused(first), "{refused}");
        }
    }
}
