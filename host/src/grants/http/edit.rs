//! How an HTTP grant is given and taken away on the command line, and how it stands in the file: one table an origin.

use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, TableLike, Value};

use super::super::edit::{Flag, Gift, absent, put};

use super::origin::Pattern;
use super::rule::Written;
use crate::model::text;

/// The key under `[mounts.NAME]`.
const KEY: &str = "http";

/// Gives it.
pub(super) const GIVE: Flag =
    Flag { name: KEY, value: "ORIGIN", help: "Let the provider send requests to ORIGIN, such as https://api.example" };

/// What says more about an origin.
pub(super) const MORE: &[Flag] = &[
    Flag { name: "method", value: "METHOD", help: "Allow METHOD for the origin before it, beside those it has" },
    Flag { name: "path", value: "GLOB", help: "Allow paths like GLOB of the origin before it, beside those it has" },
    Flag {
        name: "header",
        value: "NAME: VALUE",
        help: "Add a header to requests to the origin before it; the provider cannot see it. VALUE may hold ${secret:NAME}",
    },
    Flag {
        name: "query",
        value: "NAME=VALUE",
        help: "Add a parameter to requests to the origin before it; the provider cannot see it. VALUE may hold ${secret:NAME}",
    },
    Flag {
        name: "network",
        value: "ADDRESS|NETWORK",
        help: "Allow the origin before it to lie at this address or in this network, such as 10.0.0.0/8",
    },
];

/// What is allowed where no methods are written.
pub(super) const METHODS: [&str; 2] = ["GET", "HEAD"];

/// Flags that add to a list, with the list's key.
const LISTS: [(&str, &str); 3] = [("method", "methods"), ("path", "paths"), ("network", "networks")];

/// Writes an origin into the mount's table; what is there for it already is kept and added to.
///
/// # Errors
/// Says what was expected.
pub(super) fn give(mount: &mut dyn TableLike, gift: &Gift) -> Result<(), String> {
    let (headers, queries) = (pairs(gift, "header", ':')?, pairs(gift, "query", '=')?);
    let odd = || format!("{KEY}: expected a list of tables there; edit the file by hand");
    if !mount.contains_key(KEY) {
        // A mount that is written in one line has no tables of its own: there this becomes a list in that line.
        mount.insert(KEY, Item::ArrayOfTables(ArrayOfTables::new()));
    }
    match mount.get_mut(KEY).ok_or_else(odd)? {
        Item::ArrayOfTables(tables) => {
            let known = tables.iter().position(|table| names(table, &gift.what));
            let at = known.unwrap_or(tables.len());
            if known.is_none() {
                let mut table = Table::new();
                table.insert("origin", gift.what.as_str().into());
                tables.push(table);
            }
            let table = tables.get_mut(at).ok_or_else(odd)?;
            known.map_or(Ok(()), |_| widen(table, gift))?;
            fill(table, gift, &headers, &queries)
        }
        Item::Value(Value::Array(array)) => {
            let is_it = |value: &Value| value.as_inline_table().is_some_and(|table| names(table, &gift.what));
            let known = array.iter().position(is_it);
            let at = known.unwrap_or(array.len());
            if known.is_none() {
                let mut table = InlineTable::new();
                table.insert("origin", gift.what.as_str().into());
                append(array, table.into());
            }
            let table = array.get_mut(at).and_then(Value::as_inline_table_mut).ok_or_else(odd)?;
            known.map_or(Ok(()), |_| widen(table, gift))?;
            fill(table, gift, &headers, &queries)
        }
        _ => Err(odd()),
    }
}

/// Parts of names whose values are seldom meant to be read.
const PRIVATE: [&str; 8] = ["auth", "cookie", "key", "token", "secret", "password", "session", "signature"];

/// Warns of what looks like a credential in plain sight.
pub(super) fn advise(gift: &Gift) -> Vec<String> {
    let mut all = Vec::new();
    for (flag, at) in [("header", ':'), ("query", '=')] {
        let pairs = gift.values(flag).filter_map(|value| value.split_once(at));
        let open = pairs.filter(|(name, value)| {
            let name = name.to_ascii_lowercase();
            PRIVATE.iter().any(|part| name.contains(part)) && !value.contains("${secret:")
        });
        all.extend(open.map(|(name, _)| {
            let name = text::excerpt(name.trim(), 80);
            let typed = if flag == "header" { format!("{name}: ${{secret:NAME}}") } else { format!("{name}=${{secret:NAME}}") };
            format!(
                "the value of \"{name}\" will stand in the configuration for whoever reads that; to keep it elsewhere, add  NAME = {{ file = \"FILE\" }}  to [secrets] and write --{flag} '{typed}'"
            )
        }));
    }
    all
}

/// Takes an origin out of the mount's table, with all that belongs to it.
///
/// # Errors
/// Names the origins that are there when that is not.
pub(super) fn take(mount: &mut dyn TableLike, origin: &str) -> Result<(), String> {
    let mut there: Vec<String> = Vec::new();
    let mut note = |table: &dyn TableLike| there.extend(table.get("origin").and_then(Item::as_str).map(str::to_owned));
    let (mut removed, mut is_empty) = (false, false);
    match mount.get_mut(KEY) {
        Some(Item::ArrayOfTables(tables)) => {
            tables.iter().for_each(|table| note(table));
            let before = tables.len();
            tables.retain(|table| !names(table, origin));
            (removed, is_empty) = (tables.len() < before, tables.is_empty());
        }
        Some(Item::Value(Value::Array(array))) => {
            array.iter().filter_map(Value::as_inline_table).for_each(|table| note(table));
            let before = array.len();
            array.retain(|value| !value.as_inline_table().is_some_and(|table| names(table, origin)));
            (removed, is_empty) = (array.len() < before, array.is_empty());
        }
        _ => {}
    }
    if !removed {
        return Err(absent(KEY, origin, &there.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    if is_empty {
        mount.remove(KEY);
    }
    Ok(())
}

/// Whether a table is about this origin: `https://a.example:443` is `https://A.example`.
fn names(table: &dyn TableLike, origin: &str) -> bool {
    let plain = |origin: &str| Pattern::parse(origin).map_or_else(|_| origin.to_owned(), |known| known.to_string());
    table.get("origin").and_then(Item::as_str).is_some_and(|own| plain(own) == plain(origin))
}

/// Name and value of each `flag`, cut at the first `at`.
fn pairs(gift: &Gift, flag: &str, at: char) -> Result<Vec<(String, String)>, String> {
    let expected = MORE.iter().find(|more| more.name == flag).map_or("", |more| more.value);
    let cut = |value: &str| {
        let (name, value) = value.split_once(at).filter(|(name, _)| !name.trim().is_empty())?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    // The value may be a secret, so it is not repeated.
    gift.values(flag).map(|value| cut(value).ok_or_else(|| format!("--{flag}: expected \"{expected}\""))).collect()
}

/// Prepares the table of an origin that is there already for more: what its defaults allow stays allowed.
///
/// # Errors
/// When it would be less afterwards.
fn widen(table: &mut dyn TableLike, gift: &Gift) -> Result<(), String> {
    if gift.values("method").next().is_some() && !table.contains_key("methods") {
        METHODS.iter().try_for_each(|method| add(table, "methods", method)).unwrap_or_default();
    }
    if gift.values("path").next().is_some() && !table.contains_key("paths") {
        return Err(format!(
            "--path: every path of \"{0}\" is granted already; to grant fewer, take it away first, with  belljar revoke MOUNT --http {0}",
            text::excerpt(&gift.what, 200)
        ));
    }
    Ok(())
}

/// What an origin's grant lets a provider do.
pub(super) fn in_words(written: &Written) -> String {
    let methods = written.methods.clone().unwrap_or_else(|| METHODS.map(str::to_owned).into());
    let paths = written
        .paths
        .as_ref()
        .map_or_else(|| "every path".to_owned(), |paths| format!("paths like {}", paths.join(", ")));
    let mut words =
        format!("send {} requests to {} ({paths}), and read the answers", methods.join(", "), written.origin);
    for (kind, added) in [("header", &written.headers), ("parameter", &written.query)] {
        for (name, value) in added {
            let secrets: Vec<String> = value.names().iter().map(|name| format!("the secret \"{name}\"")).collect();
            let with = if secrets.is_empty() { String::new() } else { format!(" with {}", secrets.join(" and ")) };
            words += &format!("; belljar adds the {kind} \"{name}\"{with}, which the component cannot see");
        }
    }
    for network in &written.networks {
        words += &format!("; the address may lie in {network}");
    }
    text::excerpt(&words, 1000)
}

/// Adds what a gift says to the table of its origin.
fn fill(
    table: &mut dyn TableLike,
    gift: &Gift,
    headers: &[(String, String)],
    queries: &[(String, String)],
) -> Result<(), String> {
    for (flag, key) in LISTS {
        for value in gift.values(flag) {
            add(table, key, value)
                .ok_or_else(|| format!("{KEY}.{key}: expected a list there; edit the file by hand"))?;
        }
    }
    for (key, pairs) in [("headers", headers), ("query", queries)] {
        for (name, value) in pairs {
            set(table, key, name, value)
                .ok_or_else(|| format!("{KEY}.{key}: expected a table there; edit the file by hand"))?;
        }
    }
    Ok(())
}

/// Adds a value to a list, unless it is in it.
fn add(table: &mut dyn TableLike, key: &str, value: &str) -> Option<()> {
    if !table.contains_key(key) {
        table.insert(key, Item::Value(Value::Array(Array::new())));
    }
    let array = table.get_mut(key)?.as_array_mut()?;
    if !array.iter().any(|own| own.as_str() == Some(value)) {
        append(array, value.into());
    }
    Some(())
}

/// Sets a name in a table of names, whatever its spelling there: header names know no case.
fn set(table: &mut dyn TableLike, key: &str, name: &str, value: &str) -> Option<()> {
    if !table.contains_key(key) {
        table.insert(key, Item::Value(Value::InlineTable(InlineTable::new())));
    }
    let item = table.get_mut(key)?;
    let own = item.as_table_like()?.iter().map(|(own, _)| own).find(|own| own.eq_ignore_ascii_case(name));
    let name = own.filter(|_| key == "headers").unwrap_or(name).to_owned();
    put(item, &name, value.into())
}

/// Adds a value to a list, spelled as the others are: in their line, or in a line of its own.
fn append(array: &mut Array, mut value: Value) {
    let decor = array.iter().last().map(|last| last.decor().clone());
    match decor.as_ref().and_then(|decor| decor.prefix()?.as_str()) {
        Some(prefix) if prefix.contains('\n') => {
            // Without the comments that stand before the last one.
            let line = prefix.rsplit_once('\n').map_or(String::new(), |(_, indent)| format!("\n{indent}"));
            *value.decor_mut() = toml_edit::Decor::new(line, "");
            array.push_formatted(value);
        }
        _ => array.push(value),
    }
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn gift(what: &str, more: &[(&'static str, &str)]) -> Gift {
        Gift { what: what.to_owned(), more: more.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect() }
    }

    fn given(source: &str, gift: &Gift) -> String {
        let mut doc: DocumentMut = source.parse().unwrap();
        give(doc["mounts"]["a"].as_table_like_mut().unwrap(), gift).unwrap();
        let text = doc.to_string();
        assert!(text.parse::<toml::Table>().is_ok(), "{text}");
        text
    }

    fn taken(source: &str, origin: &str) -> Result<String, String> {
        let mut doc: DocumentMut = source.parse().unwrap();
        take(doc["mounts"]["a"].as_table_like_mut().unwrap(), origin)?;
        Ok(doc.to_string())
    }

    const WHOLE: &[(&str, &str)] = &[
        ("method", "GET"),
        ("path", "/a/*"),
        ("header", "Authorization: Bearer ${secret:x}"),
        ("query", "key=${secret:y}"),
        ("network", "10.0.0.0/8"),
    ];

    #[test]
    fn an_origin_has_a_table_of_its_own() {
        let text = given("[mounts.a]\nuri = 'a://' # mine\n\n[limits]\n", &gift("https://x.example", WHOLE));
        let expected = "[mounts.a]\nuri = 'a://' # mine\n\n[[mounts.a.http]]\norigin = \"https://x.example\"\nmethods = [\"GET\"]\npaths = [\"/a/*\"]\nnetworks = [\"10.0.0.0/8\"]\nheaders = { Authorization = \"Bearer ${secret:x}\" }\nquery = { key = \"${secret:y}\" }\n\n[limits]\n";
        assert_eq!(text, expected);
        assert_eq!(taken(&text, "https://x.example").unwrap(), "[mounts.a]\nuri = 'a://' # mine\n\n[limits]\n");
    }

    #[test]
    fn a_second_gift_of_an_origin_is_added_to_the_first() {
        let first = given("[mounts.a]\n", &gift("https://x.example", WHOLE));
        assert_eq!(given(&first, &gift("https://X.example:443", WHOLE)), first);
        let more = [("method", "HEAD"), ("header", "authorization: Basic ${secret:z}")];
        let second = given(&first, &gift("https://x.example", &more));
        assert!(
            second.contains("methods = [\"GET\", \"HEAD\"]")
                && second.contains("{ Authorization = \"Basic ${secret:z}\" }"),
            "{second}"
        );
        let other = given(&first, &gift("https://y.example", &[]));
        assert_eq!(other.matches("[[mounts.a.http]]").count(), 2, "{other}");
        assert_eq!(taken(&other, "https://y.example").unwrap(), first);
    }

    #[test]
    fn more_is_never_less() {
        let plain = "[[mounts.a.http]]\norigin = 'https://x.example'\n";
        let more = given(plain, &gift("https://x.example", &[("method", "POST"), ("method", "GET")]));
        assert_eq!(more, format!("{plain}methods = [\"GET\", \"HEAD\", \"POST\"]\n"));
        let mut doc: DocumentMut = plain.parse().unwrap();
        let why = give(doc["mounts"]["a"].as_table_like_mut().unwrap(), &gift("https://x.example", &[("path", "/a")]));
        assert!(why.unwrap_err().contains("every path of \"https://x.example\" is granted already"));
    }

    #[test]
    fn lists_in_a_line_stay_in_a_line() {
        for source in [
            "[mounts.a]\nhttp = [{ origin = 'https://x.example', methods = ['GET'] }] # why\n",
            "[mounts]\na = { http = [{ origin = 'https://x.example', methods = ['GET'] }] } # why\n",
        ] {
            let more = given(source, &gift("https://x.example", &[("method", "HEAD")]));
            assert_eq!(more, source.replace("['GET']", "['GET', \"HEAD\"]"));
            let other = given(source, &gift("https://y.example", &[]));
            assert_eq!(other, source.replace("}]", "}, { origin = \"https://y.example\" }]"));
            assert_eq!(taken(&other, "https://y.example").unwrap(), source);
        }
        let lines = "[mounts.a]\nhttp = [\n  # first\n  { origin = 'https://x.example' },\n]\n";
        let other = given(lines, &gift("https://y.example", &[]));
        assert_eq!(other, lines.replace("},\n]", "},\n  { origin = \"https://y.example\" },\n]"));
        assert_eq!(
            given("[mounts]\na = {}\n", &gift("https://y.example", &[])),
            "[mounts]\na = { http = [{ origin = \"https://y.example\" }] }\n"
        );
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let source = "[mounts.a]\nhttp = [{ origin = 'https://x.example' }]\n";
        assert_eq!(
            taken(source, "https://z.example").unwrap_err(),
            "it holds no http \"https://z.example\"; it holds \"https://x.example\""
        );
        assert_eq!(taken(source, "https://x.example").unwrap(), "[mounts.a]\n");
        let mut doc: DocumentMut = "[mounts.a]\nhttp = 'x'\n".parse().unwrap();
        let mount = doc["mounts"]["a"].as_table_like_mut().unwrap();
        assert!(give(mount, &gift("https://x.example", &[])).unwrap_err().contains("expected a list of tables"));
        let why = give(mount, &gift("https://x.example", &[("header", "s3cr3t")])).unwrap_err();
        assert!(why.contains("NAME: VALUE") && !why.contains("s3cr3t"), "{why}");
    }
}
