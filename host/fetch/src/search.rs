//! Search in one index. An index only proposes sources: each must be one that can be resolved, and nothing else of it is
//! believed. One file for each kind of index.

mod json_list;
mod mcp_registry;
mod repositories;
mod wasm_directory;

use belljar_fetch_protocol::{Failure, FailureKind, FoundComponent, SearchIndex, SearchRequest, SearchResult};
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::credentials::Login;
use crate::failure::{Outcome, failure};
use crate::http::{Call, Client};
use crate::source::Source;
use crate::text;
use crate::url::{Origin, Url};
use repositories::Namespace;

/// The most components that are reported.
const MAX_FOUND: usize = 100;

/// The most bytes of an index, or of its answer.
const MAX_INDEX: usize = 4 * 1024 * 1024;

/// The most characters of a word.
const MAX_WORD: usize = 100;

/// The most characters of a version.
const MAX_VERSION: usize = 100;

/// The most artifacts of a registry that are looked at: each costs up to three requests.
const MAX_ARTIFACTS: usize = 20;

/// A search that is ready before the wall.
pub(crate) enum Search {
    /// In a list that the request holds.
    Text(TextSearch),
    /// At a server.
    Server(ServerSearch),
}

/// See [`Search::Text`].
pub(crate) struct TextSearch {
    list: String,
    word: String,
}

/// See [`Search::Server`].
pub(crate) struct ServerSearch {
    index: Index,
    word: String,
}

enum Index {
    Json(Url),
    Namespace(Namespace),
    WasmDirectory(Url),
    McpRegistry(Url),
}

impl Search {
    /// Checks a request.
    pub(crate) fn parse(request: &SearchRequest) -> Outcome<Self> {
        let word = text::clean(&request.word, MAX_WORD);
        if word.is_empty() || word != request.word {
            let problem = format!("\"{word}\" cannot be searched for");
            return Err(failure(FailureKind::Request, problem, "write a word of at most 100 letters"));
        }
        let index = match &request.index {
            SearchIndex::Text { text } => return Ok(Self::Text(TextSearch { list: text.clone(), word })),
            SearchIndex::Json { url } => Index::Json(index_url(url)?),
            SearchIndex::Oci { namespace } => Index::Namespace(Namespace::parse(namespace)?),
            SearchIndex::WasmDirectory { url } => Index::WasmDirectory(index_url(url)?),
            SearchIndex::McpRegistry { url } => Index::McpRegistry(index_url(url)?),
        };
        Ok(Self::Server(ServerSearch { index, word }))
    }
}

impl TextSearch {
    /// Searches.
    pub(crate) fn run(self) -> Outcome<SearchResult> {
        json_list::search(self.list.as_bytes(), &self.word)
    }
}

impl ServerSearch {
    /// The server that the operator named.
    pub(crate) fn origin(&self) -> &Origin {
        match &self.index {
            Index::Json(url) | Index::WasmDirectory(url) | Index::McpRegistry(url) => &url.origin,
            Index::Namespace(namespace) => namespace.origin(),
        }
    }

    /// The registry whose login may be sent. An index itself gets none.
    pub(crate) fn registry(&self) -> Option<&str> {
        match &self.index {
            Index::Namespace(namespace) => Some(namespace.registry()),
            _ => None,
        }
    }

    /// Searches. `client` is for [`ServerSearch::origin`].
    pub(crate) async fn run(self, mut client: Client, login: Option<Login>) -> Outcome<SearchResult> {
        let Self { index, word } = self;
        match index {
            Index::Json(url) => json_list::search(&get(&mut client, url).await?, &word),
            Index::Namespace(namespace) => repositories::search(client, &namespace, login, &word).await,
            Index::WasmDirectory(url) => wasm_directory::search(&mut client, url, &word).await,
            Index::McpRegistry(url) => mcp_registry::search(client, url, &word).await,
        }
    }
}

/// The URL of an index: HTTPS, or a server on this machine.
fn index_url(typed: &str) -> Outcome<Url> {
    let url = Url::parse(typed).filter(|url| url.origin.secure || url.origin.is_loopback());
    url.ok_or_else(|| {
        let problem = format!("\"{}\" is not the URL of an index", text::clean(typed, text::NAME));
        failure(FailureKind::Request, problem, "write https://HOST/PATH, without a user name")
    })
}

/// `url` with `path` behind it, which begins with `/`.
fn below(mut url: Url, path: &str) -> Url {
    let base = url.path.split('?').next().unwrap_or_default().trim_end_matches('/').to_owned();
    url.path = base + path;
    url
}

/// A word as a part of a query.
fn encoded(word: &str) -> String {
    utf8_percent_encode(word, NON_ALPHANUMERIC).to_string()
}

/// The answer of an index.
async fn get(client: &mut Client, url: Url) -> Outcome<Vec<u8>> {
    let mut answer = client.send(Call::get(url, "application/json")).await?;
    if answer.status != StatusCode::OK {
        let problem = format!("the index \"{}\" answers {}", answer.url.shown(), answer.status.as_u16());
        let kind = if answer.status == StatusCode::NOT_FOUND { FailureKind::NotFound } else { FailureKind::Network };
        return Err(failure(kind, problem, "check the URL of the index under [[search.indexes]], or try again later"));
    }
    answer.body(MAX_INDEX, "the index").await
}

/// An index that answers what no index answers.
fn not_an_index(what: &str, error: &serde_json::Error) -> Box<Failure> {
    let problem = format!("{what} cannot be read: {error}");
    failure(FailureKind::Content, problem, "ask its operator, or correct the entry under [[search.indexes]]")
}

/// What a search has found so far.
#[derive(Default)]
struct Findings {
    found: Vec<FoundComponent>,
    /// True if more was found than is reported.
    is_cut: bool,
    /// The entries that name no source.
    strange: usize,
}

impl Findings {
    /// Adds a component with cleaned texts, if its reference is a source that `belljar add` takes.
    fn add(&mut self, name: &str, version: Option<&str>, description: Option<&str>, reference: &str) {
        if self.found.len() == MAX_FOUND {
            self.is_cut = true;
            return;
        }
        let is_source = text::clean(reference, 2 * text::NAME) == reference && Source::parse(reference).is_ok();
        let Some(name) = text::clean_some(name, text::NAME).filter(|_| is_source) else {
            self.strange += 1;
            return;
        };
        let reference = reference.to_owned();
        let version = version.and_then(|version| text::clean_some(version, MAX_VERSION));
        let description = description.and_then(|words| text::clean_some(words, text::NAME));
        self.found.push(FoundComponent { name, version, description, reference });
    }

    /// The result, with what was left out.
    fn result(self, mut notes: Vec<String>) -> SearchResult {
        if self.is_cut {
            notes.push(format!("there is more than these {MAX_FOUND}; search for a longer word"));
        }
        match self.strange {
            0 => {}
            1 => notes.push("1 entry has no name, or names no source; it was left out".to_owned()),
            many => notes.push(format!("{many} entries have no name, or name no source; they were left out")),
        }
        SearchResult { found: self.found, notes }
    }
}

/// True if one of the texts has the word, in small and large letters alike.
fn fits(word: &str, texts: &[&str]) -> bool {
    let word = word.to_lowercase();
    texts.iter().any(|text| text.to_lowercase().contains(&word))
}

/// The tag of the newest release: three numbers, no preview if there is another. Otherwise `latest`, or the last tag.
fn newest<'t>(tags: impl Iterator<Item = &'t str> + Clone) -> Option<&'t str> {
    let numbers = |tag: &str| {
        let tag = tag.strip_prefix('v').unwrap_or(tag);
        let mut parts = tag.split('+').next().unwrap_or(tag).split('.').map(|part| part.parse::<u64>().ok());
        let numbers = (parts.next()??, parts.next()??, parts.next()??);
        parts.next().is_none().then_some(numbers)
    };
    let releases = tags.clone().filter_map(|tag| Some((numbers(tag)?, tag)));
    let release = releases.max_by_key(|(numbers, _)| *numbers).map(|(_, tag)| tag);
    release.or_else(|| tags.clone().find(|tag| *tag == "latest")).or_else(|| tags.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_is_no_preview_if_there_is_another() {
        for (tags, tag) in [
            (&["1.2.0", "1.10.0", "2.0.0-rc.1", "latest"][..], Some("1.10.0")),
            (&["v1.2.0", "1.1.0"], Some("v1.2.0")),
            (&["main", "latest", "abc"], Some("latest")),
            (&["2.0.0-rc.1"], Some("2.0.0-rc.1")),
            (&[], None),
        ] {
            assert_eq!(newest(tags.iter().copied()), tag, "{tags:?}");
        }
    }

    #[test]
    fn an_index_proposes_only_sources_and_clean_texts() {
        let mut findings = Findings::default();
        findings.add("ti\u{202e}des\n", Some("1\u{1b}[0m"), Some("\u{200b}"), "ghcr.io/acme/tides:1.0.0");
        for reference in [
            "",
            "tides",
            "./tides.wasm",
            "--yes",
            "ghcr.io/acme/tides:1.0.0\n",
            "https://a.example/x.wasm",
            "file:///etc/passwd",
        ] {
            findings.add("x", None, None, reference);
        }
        findings.add("\u{200b}", None, None, "ghcr.io/acme/tides:1.0.0");
        let result = findings.result(Vec::new());
        let [one] = result.found.as_slice() else { panic!("{result:?}") };
        assert_eq!((one.name.as_str(), one.version.as_deref(), &one.description), ("tides", Some("1 [0m"), &None));
        assert!(result.notes[0].starts_with("8 entries"), "{result:?}");
    }

    #[test]
    fn a_path_is_added_below_the_path_of_the_index() {
        for (url, shown) in [
            ("https://a.example", "https://a.example/v1?q=x"),
            ("https://a.example/api/", "https://a.example/api/v1?q=x"),
            ("https://a.example/api?key=1", "https://a.example/api/v1?q=x"),
        ] {
            assert_eq!(below(Url::parse(url).unwrap(), "/v1?q=x").to_string(), shown, "{url}");
        }
        assert_eq!(encoded("a&b=c d/#"), "a%26b%3Dc%20d%2F%23");
    }
}
