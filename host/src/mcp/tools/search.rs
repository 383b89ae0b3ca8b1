//! `search_resources`: words in names, titles, descriptions and URIs, and in contents where the operator allows it.

use rmcp::model::{ContentBlock, ErrorData, Tool};
use serde_json::json;

use super::super::{Asked, Handler};
use super::arguments::Arguments;
use super::{Answered, Entry, MOUNT, NOTICE, known_mount, tool};
use crate::gateway::search::{Found, Match, Search, folded};
use crate::model::{MountName, text};

/// Its name.
pub(super) const NAME: &str = "search_resources";

/// Matches, and the most that can be asked for.
const LIMITS: (usize, usize) = (20, 50);

/// Characters of a query.
const QUERY: usize = 256;

/// Words of a query.
const WORDS: usize = 16;

/// What it is, for a client.
pub(super) fn definition() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": QUERY, "description": "Words that must all occur, in any order and either case. No operators." },
            "mount": { "type": "string", "description": "Only this mount's." },
            "content": { "type": "boolean", "default": false, "description": "Look into contents too, where the operator allows it. Slower." },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMITS.1, "default": LIMITS.0 }
        },
        "required": ["query"],
        "additionalProperties": false
    });
    tool(
        NAME,
        "Search resources",
        "Finds resources by words in their title, name, description and URI, best matches first; with content = true also in their text. Use it when you look for something; to see all that there is use list_resources. The result says what was not looked at.",
        input,
    )
}

/// Runs it.
pub(super) async fn run(handler: &Handler, asked: &Asked, mut given: Arguments) -> Result<Answered, ErrorData> {
    let query = given.required("query", "the words to look for")?;
    let only = given.text("mount", MOUNT, |name| MountName::new(name).ok())?;
    let contents = given.flag("content")?;
    let most = given.number("limit", 1..=LIMITS.1, LIMITS.0)?;
    let words: Vec<_> = query.split_whitespace().map(folded).collect();
    if words.is_empty() || words.len() > WORDS || query.chars().count() > QUERY {
        return Err(given.wrong("query", &format!("1 to {WORDS} words, at most {QUERY} characters")));
    }
    given.finish()?;
    if let Some(name) = &only {
        known_mount(handler, NAME, name).await?;
    }
    let found = handler.gateway.search(&asked.caller, &Search { words, only, contents, most }).await;
    Ok(answer(found))
}

fn answer(found: Found) -> Answered {
    let gaps: Vec<_> = found.gaps.iter().map(|gap| text::excerpt(gap, NOTICE)).collect();
    let mut lines = vec![match (found.matches.len(), found.total) {
        (0, _) => "No matches.".to_owned(),
        (shown, total) if shown < total => format!("The best {shown} of {total} matches:"),
        (1, _) => "One match:".to_owned(),
        (shown, _) => format!("{shown} matches:"),
    }];
    let mut links = Vec::new();
    for Match { resource, mount, place, snippet, .. } in found.matches {
        let entry = Entry::of(resource, &mount);
        lines.push(format!("{}\n  in its {}: {snippet}", entry.line(), place.as_str()));
        links.push(entry.link());
    }
    lines.push(format!("Looked at {} resources, and into the contents of {}.", found.entries, found.read));
    lines.extend(gaps.iter().map(|gap| format!("not looked at: {gap}")));
    let mut content = vec![ContentBlock::text(lines.join("\n"))];
    content.append(&mut links);
    content
}
