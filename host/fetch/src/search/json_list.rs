//! belljar's own format: a list of components as JSON, in a file or behind a URL.

use belljar_fetch_protocol::SearchResult;
use serde::Deserialize;

use super::{Findings, fits, not_an_index};
use crate::failure::Outcome;

/// The list. Unknown keys are ignored, so that later versions can add some.
#[derive(Deserialize)]
struct List {
    components: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    version: Option<String>,
    description: Option<String>,
    reference: String,
}

/// The entries of the list that have the word in their name, description or reference.
pub(super) fn search(list: &[u8], word: &str) -> Outcome<SearchResult> {
    let list: List = serde_json::from_slice(list).map_err(|error| not_an_index("the index", &error))?;
    let mut findings = Findings::default();
    for Entry { name, version, description, reference } in &list.components {
        if fits(word, &[name, description.as_deref().unwrap_or_default(), reference]) {
            findings.add(name, version.as_deref(), description.as_deref(), reference);
        }
    }
    Ok(findings.result(Vec::new()))
}
