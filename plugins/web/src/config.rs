//! Parses the variable `WEB`: a TOML table with an entry for each resource or template.
//!
//! A wrong entry stays in the table as an error, and does not affect the others.

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_guest::{Error, Result};
use serde::Deserialize;

use crate::address::Address;

/// All entries, by name.
pub(crate) type Entries = BTreeMap<String, Result<Entry, String>>;

/// One entry: a URL that is served as a resource, or a URL with variables that is served as a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: Address,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// `None`: the kind follows from the MIME type of the answer.
    pub(crate) kind: Option<Kind>,
    /// A JSON pointer (RFC 6901).
    pub(crate) select: Option<String>,
    /// True if the list includes the items of the feed.
    pub(crate) items: bool,
    /// The lifetime of a cached answer; overrides the answer's own headers.
    pub(crate) fresh: Option<Duration>,
    /// Suggested values of variables.
    pub(crate) values: BTreeMap<String, Vec<String>>,
    /// Header fields to send.
    pub(crate) headers: Vec<(String, String)>,
}

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Json,
    /// RSS, Atom or JSON Feed.
    Feed,
    /// HTML, converted to Markdown.
    Page,
    /// Any other answer, unchanged.
    Raw,
}

/// An entry as written in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlEntry {
    url: String,
    title: Option<String>,
    description: Option<String>,
    kind: Option<Kind>,
    select: Option<String>,
    #[serde(default)]
    items: bool,
    fresh: Option<String>,
    #[serde(default)]
    values: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

const EXAMPLE: &str = "such as  WEB = 'status = \"https://api.example/status\"'";

/// Headers with credentials. Refused here, because they must not be in the provider's settings.
const CREDENTIAL_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// Headers that the host sets, or that would break the connection or the decoding of the answer.
const RESERVED_HEADERS: [&str; 10] = [
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "range",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Parses the value of `WEB`.
pub(crate) fn parse(text: Option<&str>) -> Result<Entries> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Err(Error::denied(format_args!(
            "nothing is configured: set the variable WEB of the mount to the URLs to serve, {EXAMPLE}"
        )));
    };
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.split('\n').count();
        Error::failed(format_args!("line {line} of WEB is not TOML ({}): write entries, {EXAMPLE}", error.message()))
    })?;
    Ok(table.into_iter().map(|(name, value)| (name.clone(), entry(&name, value))).collect())
}

fn entry(name: &str, value: toml::Value) -> Result<Entry, String> {
    check_name(name)?;
    let written = match value {
        toml::Value::String(url) => TomlEntry::of(url),
        table @ toml::Value::Table(_) => TomlEntry::deserialize(table).map_err(|error| error.message().to_owned())?,
        other => return Err(format!("expected a URL or a table with a url, found {}", other.type_str())),
    };
    written.checked()
}

/// Checks that a name is a segment of a reference without encoding.
fn check_name(name: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.bytes().all(plain) {
        return Err(
            "the name is not a path segment: use letters, digits, \"-\", \"_\", and \".\" after the first character"
                .into(),
        );
    }
    Ok(())
}

impl TomlEntry {
    fn of(url: String) -> Self {
        TomlEntry {
            url,
            title: None,
            description: None,
            kind: None,
            select: None,
            items: false,
            fresh: None,
            values: BTreeMap::new(),
            headers: BTreeMap::new(),
        }
    }

    fn checked(self) -> Result<Entry, String> {
        let address = Address::parse(&self.url)?;
        if let Some(select) = &self.select {
            check_pointer(select)?;
            if matches!(self.kind, Some(Kind::Feed | Kind::Page | Kind::Raw)) {
                return Err("select is for JSON: set kind = \"json\", or leave one of them out".to_owned());
            }
        }
        if self.items {
            if self.select.is_some() || !matches!(self.kind, None | Some(Kind::Feed)) {
                return Err("items is for feeds: set kind = \"feed\", or leave items out".to_owned());
            }
            if address.is_template() {
                return Err("items are listed for a URL without variables only: leave items out; they can be read \
                            nevertheless"
                    .to_owned());
            }
        }
        if let Some(name) = self.values.keys().find(|name| !address.variables().any(|known| known == *name)) {
            return Err(format!("values has \"{name}\", but the url has no such variable: add {{{name}}} to the url"));
        }
        let fresh = self.fresh.as_deref().map(|text| {
            humantime::parse_duration(text)
                .map_err(|_| format!("fresh is \"{text}\": expected a time such as \"5m\" or \"1h 30m\""))
        });
        let headers = self.headers.into_iter().map(header).collect::<Result<_, _>>()?;
        Ok(Entry {
            address,
            title: self.title,
            description: self.description,
            kind: self.kind.or(self.select.is_some().then_some(Kind::Json)).or(self.items.then_some(Kind::Feed)),
            select: self.select,
            items: self.items,
            fresh: fresh.transpose()?,
            values: self.values,
            headers,
        })
    }
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    let expected = "expected a JSON pointer such as \"/data/0/name\"";
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(format!("select is \"{pointer}\": {expected}"));
    }
    if pointer.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) {
        return Err(format!(
            "select is \"{pointer}\": {expected}, where \"~\" is written as \"~0\" and \"/\" as \"~1\""
        ));
    }
    Ok(())
}

fn header((name, value): (String, String)) -> Result<(String, String), String> {
    let lower = name.to_ascii_lowercase();
    if CREDENTIAL_HEADERS.contains(&lower.as_str()) {
        return Err(format!(
            "headers has \"{name}\": a provider holds no credentials; the host adds them when the http grant says \
             headers = {{ {lower} = \"...\" }}"
        ));
    }
    if RESERVED_HEADERS.contains(&lower.as_str()) {
        return Err(format!(
            "headers has \"{name}\", which the host sets or which would break the answer: leave it out"
        ));
    }
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("headers has \"{name}\", which is not a valid header name"));
    }
    if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return Err(format!("the header \"{name}\" has a character that is not printable ASCII in its value"));
    }
    Ok((lower, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(text: &str) -> Result<Entry, String> {
        let entries = parse(Some(text)).unwrap();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.into_values().next().unwrap()
    }

    #[test]
    fn a_url_alone_is_an_entry() {
        let entry = parse_one("status = \"https://api.example/status\"").unwrap();
        assert_eq!(entry.address.fixed().unwrap().as_str(), "https://api.example/status");
        assert_eq!((entry.kind, entry.items, entry.fresh), (None, false, None));
    }

    #[test]
    fn a_table_sets_all_options() {
        let entry = parse_one(
            r#"
            [user]
            url = "https://api.example/users/{id}"
            title = "A user"
            kind = "json"
            select = "/data/0"
            fresh = "5m"
            values = { id = ["ann", "bob"] }
            headers = { Accept-Language = "de" }
        "#,
        )
        .unwrap();
        assert_eq!(entry.kind, Some(Kind::Json));
        assert_eq!(entry.fresh, Some(Duration::from_secs(300)));
        assert_eq!(entry.values["id"], ["ann", "bob"]);
        assert_eq!(entry.headers, [("accept-language".to_owned(), "de".to_owned())]);
    }

    #[test]
    fn errors_of_an_entry_name_the_cure() {
        let with = |line: &str| format!("[x]\nurl = \"https://a.example/{{id}}\"\n{line}");
        for (text, parts) in [
            ("x = 7".to_owned(), ["expected a URL", "integer"]),
            ("[x]\ntitle = \"X\"".to_owned(), ["missing field", "url"]),
            (with("titel = \"X\""), ["titel", "expected one of"]),
            (with("kind = \"rss\""), ["rss", "feed"]),
            (with("select = \"data.name\""), ["data.name", "/data/0/name"]),
            (with("select = \"/a~b\""), ["/a~b", "~0"]),
            (with("select = \"/a\"\nkind = \"page\""), ["select is for JSON", "kind"]),
            (with("items = true"), ["without variables", "leave items out"]),
            (with("fresh = \"soon\""), ["soon", "5m"]),
            (with("values = { name = [] }"), ["name", "{name}"]),
            (with("headers = { Authorization = \"Bearer x\" }"), ["no credentials", "http grant"]),
            (with("headers = { Host = \"x\" }"), ["Host", "leave it out"]),
            (with("headers = { \"a b\" = \"x\" }"), ["a b", "not a valid header name"]),
            (with("headers = { a = \"x\\ny\" }"), ["\"a\"", "printable"]),
            ("\"a/b\" = \"https://a.example/\"".to_owned(), ["name", "letters"]),
            ("\"..\" = \"https://a.example/\"".to_owned(), ["name", "letters"]),
        ] {
            let message = parse_one(&text).unwrap_err();
            assert!(parts.iter().all(|part| message.contains(part)), "{text}: {message}");
            assert!(!message.contains("Bearer x"), "{message}");
        }
    }

    #[test]
    fn a_wrong_entry_does_not_affect_the_others() {
        let entries = parse(Some("good = \"https://a.example/\"\nbad = \"a.example\"")).unwrap();
        assert!(entries["good"].is_ok() && entries["bad"].is_err());
    }

    #[test]
    fn an_empty_or_malformed_setting_gives_an_example() {
        for (text, part) in
            [(None, "variable WEB"), (Some(" "), "variable WEB"), (Some("a = 1\nhttps://a.example/"), "line 2")]
        {
            let why = match parse(text) {
                Err(Error::Denied(why)) if part == "variable WEB" => why,
                Err(Error::Failed(why)) if part == "line 2" => why,
                other => panic!("{text:?}: {other:?}"),
            };
            assert!(why.contains(part) && why.contains("status = \"https://api.example/status\""), "{why}");
        }
    }
}
