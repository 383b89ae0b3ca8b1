//! Configuration text, flags and descriptions of `http` grants. Each origin has one table in the configuration file.

use toml_edit::{InlineTable, Item, TableLike, Value};

use super::name::{Http, NAME};
use super::oauth::editor::{OAUTH_FLAGS, set_oauth};
use super::origin::OriginPattern;
use super::origin_grant::{DEFAULT_METHODS, OriginGrantConfig};
use crate::grants::edit::{
    EditDirectories, EditError, Flag, GrantArgs, NETWORK_FLAG, TomlShape, add_to_list, edit_table, remove_table,
    set_value,
};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};
use crate::grants::secrets::SecretTemplate;
use crate::model::text;

/// The flag that grants an origin.
pub(super) const ORIGIN_FLAG: Flag =
    Flag { name: NAME, value: "ORIGIN", help: "Let the provider send requests to ORIGIN, such as https://api.example" };

/// The flags that refine the grant of an origin.
pub(super) const ORIGIN_EXTRA_FLAGS: &[Flag] = &[
    Flag { name: "method", value: "METHOD", help: "Also allow METHOD for the preceding origin" },
    Flag { name: "path", value: "GLOB", help: "Also allow paths that match GLOB for the preceding origin" },
    Flag {
        name: "header",
        value: "NAME: VALUE",
        help: "Add a header to requests to the preceding origin; the provider cannot see it. VALUE may hold ${secret:NAME}",
    },
    Flag {
        name: "query",
        value: "NAME=VALUE",
        help: "Add a query parameter to requests to the preceding origin; the provider cannot see it. VALUE may hold ${secret:NAME}",
    },
    NETWORK_FLAG,
    OAUTH_FLAGS[0],
    OAUTH_FLAGS[1],
    OAUTH_FLAGS[2],
    OAUTH_FLAGS[3],
];

/// The flags that add to a list, with the key of the list.
const LISTS: [(&str, &str); 3] = [("method", "methods"), ("path", "paths"), ("network", "networks")];

/// The flag `--path` was used for an origin whose grant allows every path. Holds the origin, for display.
#[derive(Debug, thiserror::Error)]
#[error("--path: every path of \"{0}\" is granted already; to grant fewer, first run: belljar revoke MOUNT --http {0}")]
struct EveryPathGrantedError(String);

/// A declaration names a pattern of several origins.
#[derive(Debug, thiserror::Error)]
#[error("expected one origin, such as \"https://api.example\"")]
struct ManyOrigins;

/// Writes the grant of an origin into the mount's table. Extends an existing grant of this origin.
///
/// # Errors
/// States the expected form.
pub(super) fn grant_origin(mount: &mut dyn TableLike, args: &GrantArgs) -> Result<(), EditError> {
    let (headers, queries) = (pairs(args, "header", ':')?, pairs(args, "query", '=')?);
    edit_table(
        mount,
        NAME,
        ("origin", &args.value),
        |own| is_same_origin(own, &args.value),
        |table, is_known| {
            if is_known {
                keep_defaults(table, args)?;
            }
            add_values(table, args, &headers, &queries)
        },
    )
}

/// Parts of names of headers and parameters whose values are usually private.
const PRIVATE: [&str; 8] = ["auth", "cookie", "key", "token", "secret", "password", "session", "signature"];

/// Warns about values that look like credentials and are not secrets.
pub(super) fn advise(args: &GrantArgs) -> Vec<String> {
    let mut all = Vec::new();
    for (flag, at) in [("header", ':'), ("query", '=')] {
        let pairs = args.flag_values(flag).filter_map(|value| value.split_once(at));
        let open = pairs.filter(|(name, value)| {
            let name = name.to_ascii_lowercase();
            PRIVATE.iter().any(|part| name.contains(part)) && !value.contains("${secret:")
        });
        all.extend(open.map(|(name, _)| {
            let name = text::excerpt(name.trim(), 80);
            let typed = if flag == "header" { format!("{name}: ${{secret:NAME}}") } else { format!("{name}=${{secret:NAME}}") };
            format!(
                "the value of \"{name}\" will be readable in the configuration; to keep it elsewhere, add  NAME = {{ file = \"FILE\" }}  to [secrets] and write --{flag} '{typed}'"
            )
        }));
    }
    all
}

/// Removes the grant of an origin from the mount's table.
///
/// # Errors
/// When the mount lacks this origin. The error lists the mount's origins.
pub(super) fn revoke_origin(mount: &mut dyn TableLike, origin: &str) -> Result<(), EditError> {
    remove_table(mount, NAME, ("origin", origin), |own| is_same_origin(own, origin))
}

/// True if both are one origin. `https://a.example:443` equals `https://A.example`.
fn is_same_origin(one: &str, other: &str) -> bool {
    let plain =
        |origin: &str| OriginPattern::parse(origin).map_or_else(|_| origin.to_owned(), |known| known.to_string());
    plain(one) == plain(other)
}

/// Splits each value of `flag` at the first `at`, into name and value.
fn pairs(args: &GrantArgs, flag: &'static str, at: char) -> Result<Vec<(String, String)>, EditError> {
    let expected = ORIGIN_EXTRA_FLAGS.iter().find(|more| more.name == flag).map_or("", |more| more.value);
    let cut = |value: &str| {
        let (name, value) = value.split_once(at).filter(|(name, _)| !name.trim().is_empty())?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    // The error leaves out the value: it may be a secret.
    args.flag_values(flag).map(|value| cut(value).ok_or(EditError::PrivateValue { flag, expected })).collect()
}

/// Writes the defaults of an existing grant into its table before a flag extends them, so that the grant keeps what it
/// allowed.
///
/// # Errors
/// When the flag would restrict the grant.
fn keep_defaults(table: &mut dyn TableLike, args: &GrantArgs) -> Result<(), EditError> {
    if args.flag_values("method").next().is_some() && !table.contains_key("methods") {
        DEFAULT_METHODS.iter().try_for_each(|method| add_to_list(table, "methods", method)).unwrap_or_default();
    }
    if args.flag_values("path").next().is_some() && !table.contains_key("paths") {
        return Err(EditError::Kind(EveryPathGrantedError(text::excerpt(&args.value, 200)).into()));
    }
    Ok(())
}

/// The words that complete "it can ..." for the grant of an origin.
pub(super) fn explain_origin(written: &OriginGrantConfig) -> String {
    let methods = written.methods.clone().unwrap_or_else(|| DEFAULT_METHODS.map(str::to_owned).into());
    let paths = written
        .paths
        .as_ref()
        .map_or_else(|| "every path".to_owned(), |paths| format!("paths like {}", paths.join(", ")));
    let mut words =
        format!("send {} requests to {} ({paths}), and read the answers", methods.join(", "), written.origin);
    for (kind, added) in [("header", &written.headers), ("parameter", &written.query)] {
        for (name, value) in added {
            let secrets: Vec<String> =
                value.secret_names().iter().map(|name| format!("the secret \"{name}\"")).collect();
            let with = if secrets.is_empty() { String::new() } else { format!(" with {}", secrets.join(" and ")) };
            words += &format!("; belljar adds the {kind} \"{name}\"{with}, which the component cannot see");
        }
    }
    if let Some(oauth) = &written.oauth {
        words += &format!("; belljar adds a {}, which the component cannot see", oauth.describe());
    }
    for network in &written.networks {
        words += &format!("; the address may lie in {network}");
    }
    text::excerpt(&words, 1000)
}

/// Adds the values of all flags to the table of an origin.
fn add_values(
    table: &mut dyn TableLike,
    args: &GrantArgs,
    headers: &[(String, String)],
    queries: &[(String, String)],
) -> Result<(), EditError> {
    let occupied = |key: &str, expected| EditError::Occupied { key: format!("{NAME}.{key}"), expected };
    for (flag, key) in LISTS {
        for value in args.flag_values(flag) {
            add_to_list(table, key, value).ok_or_else(|| occupied(key, TomlShape::List))?;
        }
    }
    for (key, pairs) in [("headers", headers), ("query", queries)] {
        for (name, value) in pairs {
            set(table, key, name, value).ok_or_else(|| occupied(key, TomlShape::Table))?;
        }
    }
    set_oauth(table, args)
}

/// Sets a name in a table. Header names keep their existing spelling, because they are case-insensitive.
fn set(table: &mut dyn TableLike, key: &str, name: &str, value: &str) -> Option<()> {
    if !table.contains_key(key) {
        table.insert(key, Item::Value(Value::InlineTable(InlineTable::new())));
    }
    let item = table.get_mut(key)?;
    let own = item.as_table_like()?.iter().map(|(own, _)| own).find(|own| own.eq_ignore_ascii_case(name));
    let name = own.filter(|_| key == "headers").unwrap_or(name).to_owned();
    set_value(item, &name, value.into())
}

impl GrantEditor for Http {
    const EXAMPLE: &'static str = "http = [{ origin = \"https://api.example.com\" }]";
    const SUMMARY: &'static str = "HTTP requests that the provider may make. Each entry names one origin. Without an entry every request is refused.";
    const FLAG: Flag = ORIGIN_FLAG;
    const EXTRA_FLAGS: &'static [Flag] = ORIGIN_EXTRA_FLAGS;
    const REVOKE_PLACEHOLDER: &'static str = "ORIGIN";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "origin", check: check_origin, may_omit: true, accepts_any: false, accepts_example: false };
    const CONSENT_QUESTION: &'static str = "to send requests (GET and HEAD) to";

    fn templates(config: &Vec<OriginGrantConfig>) -> Vec<&SecretTemplate> {
        let added = config.iter().flat_map(|written| written.headers.values().chain(written.query.values()));
        let oauth = config.iter().filter_map(|written| written.oauth.as_ref());
        added.chain(oauth.filter_map(|oauth| oauth.secret.as_ref())).collect()
    }

    fn describe(config: &Vec<OriginGrantConfig>) -> Vec<String> {
        config.iter().map(OriginGrantConfig::describe).collect()
    }

    fn explain(config: &Vec<OriginGrantConfig>) -> Vec<String> {
        config.iter().map(explain_origin).collect()
    }

    fn meets(config: &Vec<OriginGrantConfig>, need: &Need) -> bool {
        let Some(wanted) = &need.name else { return !config.is_empty() };
        let is_same = |written: &OriginGrantConfig| {
            OriginPattern::parse(&written.origin).is_ok_and(|own| own.to_string() == *wanted)
        };
        config.iter().any(is_same)
    }

    fn suggest(_: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        let origin = match need {
            Some(need) => need.name.as_deref()?,
            None => "https://api.example.com",
        };
        Some(GrantSuggestion {
            line: format!("http = [{{ origin = \"{origin}\" }}]"),
            flags: vec!["--http".to_owned(), origin.to_owned()],
            prerequisite: None,
        })
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, _: &EditDirectories) -> Result<(), EditError> {
        grant_origin(mount, args)
    }

    fn grant_permanently(mount: &mut dyn TableLike, origin: &str) -> Result<(), EditError> {
        grant_origin(mount, &GrantArgs { value: origin.to_owned(), extra_flags: Vec::new() })
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        revoke_origin(mount, name)
    }

    fn advise(args: &GrantArgs) -> Vec<String> {
        advise(args)
    }
}

/// Checks the origin of a declaration, and returns its canonical form.
fn check_origin(origin: &str) -> Result<String, KindError> {
    let pattern = OriginPattern::parse(origin)?;
    if pattern.is_wildcard() {
        return Err(ManyOrigins.into());
    }
    Ok(pattern.to_string())
}

#[cfg(test)]
mod tests {
    use toml_edit::DocumentMut;

    use super::*;

    fn args(value: &str, more: &[(&'static str, &str)]) -> GrantArgs {
        GrantArgs {
            value: value.to_owned(),
            extra_flags: more.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect(),
        }
    }

    fn given(source: &str, args: &GrantArgs) -> String {
        let mut doc: DocumentMut = source.parse().unwrap();
        grant_origin(doc["mounts"]["a"].as_table_like_mut().unwrap(), args).unwrap();
        let text = doc.to_string();
        assert!(text.parse::<toml::Table>().is_ok(), "{text}");
        text
    }

    fn taken(source: &str, origin: &str) -> Result<String, EditError> {
        let mut doc: DocumentMut = source.parse().unwrap();
        revoke_origin(doc["mounts"]["a"].as_table_like_mut().unwrap(), origin)?;
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
    fn each_origin_has_its_own_table() {
        let text = given("[mounts.a]\nuri = 'a://' # mine\n\n[limits]\n", &args("https://x.example", WHOLE));
        let expected = "[mounts.a]\nuri = 'a://' # mine\n\n[[mounts.a.http]]\norigin = \"https://x.example\"\nmethods = [\"GET\"]\npaths = [\"/a/*\"]\nnetworks = [\"10.0.0.0/8\"]\nheaders = { Authorization = \"Bearer ${secret:x}\" }\nquery = { key = \"${secret:y}\" }\n\n[limits]\n";
        assert_eq!(text, expected);
        assert_eq!(taken(&text, "https://x.example").unwrap(), "[mounts.a]\nuri = 'a://' # mine\n\n[limits]\n");
    }

    #[test]
    fn a_second_grant_extends_the_first() {
        let first = given("[mounts.a]\n", &args("https://x.example", WHOLE));
        assert_eq!(given(&first, &args("https://X.example:443", WHOLE)), first);
        let more = [("method", "HEAD"), ("header", "authorization: Basic ${secret:z}")];
        let second = given(&first, &args("https://x.example", &more));
        assert!(
            second.contains("methods = [\"GET\", \"HEAD\"]")
                && second.contains("{ Authorization = \"Basic ${secret:z}\" }"),
            "{second}"
        );
        let other = given(&first, &args("https://y.example", &[]));
        assert_eq!(other.matches("[[mounts.a.http]]").count(), 2, "{other}");
        assert_eq!(taken(&other, "https://y.example").unwrap(), first);
    }

    #[test]
    fn extending_a_grant_never_restricts_it() {
        let plain = "[[mounts.a.http]]\norigin = 'https://x.example'\n";
        let more = given(plain, &args("https://x.example", &[("method", "POST"), ("method", "GET")]));
        assert_eq!(more, format!("{plain}methods = [\"GET\", \"HEAD\", \"POST\"]\n"));
        let mut doc: DocumentMut = plain.parse().unwrap();
        let why = grant_origin(
            doc["mounts"]["a"].as_table_like_mut().unwrap(),
            &args("https://x.example", &[("path", "/a")]),
        );
        assert!(why.unwrap_err().to_string().contains("every path of \"https://x.example\" is granted already"));
    }

    #[test]
    fn inline_lists_stay_inline() {
        for source in [
            "[mounts.a]\nhttp = [{ origin = 'https://x.example', methods = ['GET'] }] # why\n",
            "[mounts]\na = { http = [{ origin = 'https://x.example', methods = ['GET'] }] } # why\n",
        ] {
            let more = given(source, &args("https://x.example", &[("method", "HEAD")]));
            assert_eq!(more, source.replace("['GET']", "['GET', \"HEAD\"]"));
            let other = given(source, &args("https://y.example", &[]));
            assert_eq!(other, source.replace("}]", "}, { origin = \"https://y.example\" }]"));
            assert_eq!(taken(&other, "https://y.example").unwrap(), source);
        }
        let lines = "[mounts.a]\nhttp = [\n  # first\n  { origin = 'https://x.example' },\n]\n";
        let other = given(lines, &args("https://y.example", &[]));
        assert_eq!(other, lines.replace("},\n]", "},\n  { origin = \"https://y.example\" },\n]"));
        assert_eq!(
            given("[mounts]\na = {}\n", &args("https://y.example", &[])),
            "[mounts]\na = { http = [{ origin = \"https://y.example\" }] }\n"
        );
    }

    #[test]
    fn a_missing_origin_is_reported_with_the_existing_ones() {
        let source = "[mounts.a]\nhttp = [{ origin = 'https://x.example' }]\n";
        assert_eq!(
            taken(source, "https://z.example").unwrap_err().to_string(),
            "the mount has no http grant \"https://z.example\"; its http grants are \"https://x.example\""
        );
        assert_eq!(taken(source, "https://x.example").unwrap(), "[mounts.a]\n");
        let mut doc: DocumentMut = "[mounts.a]\nhttp = 'x'\n".parse().unwrap();
        let mount = doc["mounts"]["a"].as_table_like_mut().unwrap();
        assert!(
            grant_origin(mount, &args("https://x.example", &[]))
                .unwrap_err()
                .to_string()
                .contains("expected a list of tables")
        );
        let why = grant_origin(mount, &args("https://x.example", &[("header", "s3cr3t")])).unwrap_err().to_string();
        assert!(why.contains("NAME: VALUE") && !why.contains("s3cr3t"), "{why}");
    }
}
