//! The setting `VIEWS`: SQL statements that the operator names, one after another.

use belljar_guest::{Error, Result};

/// A statement with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The name.
    pub name: String,
    /// The SQL, without a semicolon at its end.
    pub sql: String,
}

/// Parses the setting. Each view begins on a new line with `name = SELECT` (or `WITH`, `VALUES`) and ends where the next
/// one begins. A line that looks like the beginning of a view and is none is an error: glued to the view above, it would
/// fail there, or change it.
///
/// # Errors
/// If a line is malformed, or a name is given twice.
pub fn parse(setting: &str) -> Result<Vec<Statement>> {
    let mut views: Vec<Statement> = Vec::new();
    // How far the line is indented that began the last view.
    let mut indent = 0;
    for line in setting.lines() {
        let depth = line.len() - line.trim_start().len();
        let begins = definition(line);
        match (begins, views.last_mut()) {
            (Some((name, sql)), _) if selects(sql) => {
                if views.iter().any(|view| view.name == name) {
                    return Err(Error::failed(format_args!("VIEWS names \"{name}\" twice")));
                }
                views.push(Statement { name: name.to_owned(), sql: sql.to_owned() });
                indent = depth;
            }
            (Some((_, sql)), Some(_)) if depth <= indent || changes(sql) => return Err(wrong_line(line)),
            (_, Some(view)) if !is_ended(&view.sql) || is_blank(line) => {
                view.sql.push('\n');
                view.sql.push_str(line);
            }
            (_, None) if is_blank(line) => {}
            _ => return Err(wrong_line(line)),
        }
    }
    for view in &mut views {
        view.sql.truncate(view.sql.trim_end().trim_end_matches(';').trim_end().len());
    }
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

fn wrong_line(line: &str) -> Error {
    let line = line.trim();
    Error::failed(format_args!(
        "VIEWS has the line \"{line}\": expected a name, \"=\" and a SELECT, as in  late = SELECT * FROM orders ; if the line \
         belongs to the view above, indent it"
    ))
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with("--")
}

/// True if the statement has its semicolon.
fn is_ended(sql: &str) -> bool {
    // A semicolon inside quotes has an odd number of quotes before it.
    sql.trim_end().ends_with(';') && ['\'', '"'].iter().all(|quote| sql.matches(*quote).count().is_multiple_of(2))
}

/// The name and the rest of a line `name = rest`.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, sql) = line.split_once('=')?;
    let (name, sql) = (name.trim(), sql.trim_start());
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_plain.then_some((name, sql))
}

fn begins_with(sql: &str, words: &[&str]) -> bool {
    let word: String = sql.chars().take_while(char::is_ascii_alphabetic).collect();
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn selects(sql: &str) -> bool {
    begins_with(sql, &["SELECT", "WITH", "VALUES"])
}

/// True for a statement that is not a SELECT. `REPLACE(` is a function.
fn changes(sql: &str) -> bool {
    const OTHERS: &[&str] = &[
        "ALTER",
        "ANALYZE",
        "ATTACH",
        "BEGIN",
        "COMMIT",
        "CREATE",
        "DELETE",
        "DETACH",
        "DROP",
        "EXPLAIN",
        "INSERT",
        "PRAGMA",
        "REINDEX",
        "REPLACE",
        "ROLLBACK",
        "SAVEPOINT",
        "UPDATE",
        "VACUUM",
    ];
    let rest = sql.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start();
    begins_with(sql, OTHERS) && !rest.starts_with('(')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_ends_where_the_next_one_begins() {
        let views = parse("\n-- what is late\nlate = select *\n  from orders\n  where a\n = 1;\n\nby-day=WITH x AS (SELECT 1)\nSELECT * FROM x").unwrap();
        let of = |name: &str, sql: &str| Statement { name: name.into(), sql: sql.into() };
        let expected = [
            of("by-day", "WITH x AS (SELECT 1)\nSELECT * FROM x"),
            of("late", "select *\n  from orders\n  where a\n = 1"),
        ];
        assert_eq!(views, expected);
        assert_eq!(parse(""), Ok(Vec::new()));
        assert!(parse("DROP TABLE x").is_err());
        for setting in [
            "a = SELECT 1\ngone = DELETE FROM t",
            "  a = SELECT 1\n  gone = DELETE FROM t",
            "a = SELECT 1\n   gone = PRAGMA journal_mode",
            "a = SELECT 1\ngone = SELCT 2",
            "a = SELECT 1;\ngone: SELECT 2",
            "a = SELECT 1;\nDROP TABLE t",
        ] {
            let line = setting.lines().last().unwrap().trim();
            let error = parse(setting).unwrap_err().to_string();
            assert!(error.contains(&format!("\"{line}\"")), "{setting}: {error}");
        }
        for setting in [
            "a = SELECT 1 WHERE ';\n' = x\nAND b = 1",
            "a = SELECT x FROM t WHERE\n  x = REPLACE(y, 'a', 'b')",
            "  a = SELECT x FROM t WHERE\n    x = 5;\n  -- end\n\n  b = VALUES (1)",
        ] {
            assert!(parse(setting).is_ok(), "{setting}: {:?}", parse(setting));
        }
        assert!(parse("a = SELECT 1\na = SELECT 2").is_err());
    }
}
