//! Virtual tables: which tables hold their data, and words for modules, functions and collations that this build of
//! SQLite lacks.

/// The tables that hold the data of a virtual table, as ends of names.
pub(crate) fn shadows(module: &str) -> &'static [&'static str] {
    match module.to_ascii_lowercase().as_str() {
        "fts3" | "fts4" => &["content", "segments", "segdir", "docsize", "stat"],
        "fts5" => &["data", "idx", "content", "docsize", "config"],
        "rtree" | "rtree_i32" | "geopoly" => RTREE,
        _ => &[],
    }
}

/// The shadow tables of an R*Tree.
pub(crate) const RTREE: &[&str] = &["node", "rowid", "parent"];

/// True if the module is a full-text index, which has `MATCH`.
pub(crate) fn is_text_index(module: &str) -> bool {
    ["fts3", "fts4", "fts5"].iter().any(|known| module.eq_ignore_ascii_case(known))
}

/// True if the module stores an R*Tree.
pub(crate) fn is_rtree(module: &str) -> bool {
    ["rtree", "rtree_i32", "geopoly"].iter().any(|known| module.eq_ignore_ascii_case(known))
}

/// The module in `CREATE VIRTUAL TABLE name USING module(...)`.
pub(crate) fn module_of(sql: &str) -> Option<String> {
    let mut rest = skip_space(sql);
    for word in ["CREATE", "VIRTUAL", "TABLE"] {
        rest = skip_space(strip_word(rest, word)?);
    }
    for word in ["IF", "NOT", "EXISTS"] {
        rest = strip_word(rest, word).map_or(rest, skip_space);
    }
    let mut rest = skip_space(skip_name(rest)?);
    if let Some(after) = rest.strip_prefix('.') {
        rest = skip_space(skip_name(skip_space(after))?);
    }
    let rest = skip_space(strip_word(rest, "USING")?);
    let end = rest.len() - skip_name(rest)?.len();
    Some(rest.get(..end)?.trim_matches(['"', '`', '[', ']', '\'']).to_owned())
}

/// `text` without spaces and comments at its start.
pub(crate) fn skip_space(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = match (rest.strip_prefix("--"), rest.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n').map_or("", |(_, after)| after),
            (_, Some(comment)) => comment.split_once("*/").map_or("", |(_, after)| after),
            _ => return rest,
        };
        rest = after.trim_start();
    }
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(word.len())?;
    (head.eq_ignore_ascii_case(word) && !rest.starts_with(is_of_name)).then_some(rest)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()
}

/// `text` after the name at its start, which may be quoted.
fn skip_name(text: &str) -> Option<&str> {
    let quote = text.chars().next()?;
    let end = match quote {
        '"' | '`' | '\'' => quote,
        '[' => ']',
        _ => {
            let rest = text.trim_start_matches(is_of_name);
            return (rest.len() < text.len()).then_some(rest);
        }
    };
    let mut rest = text.get(1..)?;
    loop {
        rest = rest.split_once(end)?.1;
        match rest.strip_prefix(end) {
            Some(after) if end != ']' => rest = after,
            _ => return Some(rest),
        }
    }
}

/// Adds the reason and the way out to an error of SQLite that says that something is missing.
pub(crate) fn explain(message: &str) -> Option<String> {
    let after = |start: &str| message.split_once(start).map(|(_, rest)| first_word(rest));
    if let Some(module) = after("no such module: ") {
        let origin = match origin_of(module) {
            Some(origin) => format!("it is part of {origin}"),
            None => "it is an extension of the program that made the table".to_owned(),
        };
        return Some(format!(
            "the virtual table needs the module \"{module}\", which this provider does not have ({origin}); its data may be \
             in other tables of the database, see \"schema.sql\""
        ));
    }
    if let Some(table) = message.split_once("vtable constructor failed: ").map(|(_, table)| table) {
        return Some(format!(
            "the virtual table \"{}\" cannot be opened: its module refuses it, or the tables that hold its data are missing or \
             damaged",
            table.split(" in ").next().unwrap_or_default()
        ));
    }
    if let Some(tokenizer) = after("no such tokenizer: ").or(after("unknown tokenizer: ")) {
        return Some(format!(
            "the full-text index needs the tokenizer \"{tokenizer}\", which this provider does not have; the texts are in the \
             table with the same name and the end \"_content\""
        ));
    }
    if let Some(collation) = after("no such collation sequence: ") {
        return Some(format!(
            "the statement needs the collation \"{collation}\", which the program that made the database defines and this \
             provider does not have; sort by another column, or not at all"
        ));
    }
    if let Some(name) = after("no such table: ").filter(|name| origin_of(name).is_some()) {
        let origin = origin_of(name)?;
        return Some(format!("no such table: {name}; it is part of {origin}, which this provider does not have"));
    }
    if let Some(function) = after("no such function: ").or(after("unknown function: ")) {
        let function = function.trim_end_matches("()");
        return Some(format!(
            "no such function: {function}; this provider has the functions of SQLite itself, and none that programs add"
        ));
    }
    None
}

fn first_word(text: &str) -> &str {
    text.split([' ', '\n', ';', ',']).next().unwrap_or_default()
}

/// The extension that has this module or table-valued function.
fn origin_of(module: &str) -> Option<&'static str> {
    let module = module.to_ascii_lowercase();
    let is = |names: &[&str]| names.contains(&module.as_str());
    match () {
        () if module.starts_with("virtual") => Some("SpatiaLite"),
        () if is(&["vec0", "vec_each"]) => Some("sqlite-vec"),
        () if is(&["vss0"]) => Some("sqlite-vss"),
        () if is(&["spellfix1", "editdist3"]) => Some("the extension spellfix1"),
        () if is(&[
            "generate_series",
            "csv",
            "zipfile",
            "fsdir",
            "completion",
            "transitive_closure",
            "closure",
            "bytecode",
        ]) =>
        {
            Some("the program sqlite3 or an extension of it")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_found_in_the_statement() {
        for (sql, module) in [
            ("CREATE VIRTUAL TABLE a USING fts5(x)", "fts5"),
            ("create virtual table if not exists main.\"a \"\"b\" using FTS4 (x)", "FTS4"),
            ("CREATE VIRTUAL TABLE /* c */ [a b] -- d\n USING \"rtree\"(i)", "rtree"),
            ("CREATE VIRTUAL TABLE 'using' USING vec0", "vec0"),
            ("CREATE VIRTUAL TABLE `ü` USING x_y", "x_y"),
        ] {
            assert_eq!(module_of(sql).as_deref(), Some(module), "{sql}");
        }
        for odd in
            ["CREATE TABLE a (b)", "", "CREATE VIRTUAL", "CREATE VIRTUAL TABLE \"a", "CREATE VIRTUAL TABLE a USING"]
        {
            assert_eq!(module_of(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (message, words) in [
            ("no such module: VirtualSpatialIndex", "SpatiaLite"),
            ("no such module: vec0", "sqlite-vec"),
            ("no such module: odd", "\"odd\""),
            ("no such tokenizer: simple", "_content"),
            ("no such collation sequence: GERMAN", "\"GERMAN\""),
            ("no such table: generate_series in SELECT 1", "the program sqlite3"),
            ("unknown function: myfunc()", "no such function: myfunc;"),
        ] {
            assert!(explain(message).is_some_and(|text| text.contains(words)), "{message}: {:?}", explain(message));
        }
        assert_eq!(explain("no such table: orders"), None);
    }
}
