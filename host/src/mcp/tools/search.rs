//! `search_resources`: finds resources by words in their names, titles, descriptions and URIs. It also searches
//! contents if the operator allows it.

use rmcp::model::{ContentBlock, ErrorData, Tool};
use serde_json::json;

use super::super::context::RequestContext;
use super::super::fault;
use super::super::handler::Handler;
use super::arguments::Arguments;
use super::definition::tool;
use super::entry::{NOTICE_LENGTH, ToolContent, ToolEntry, text_bytes};
use super::mount;
use crate::gateway::search::{SearchMatch, SearchRequest, SearchResults, folded};
use crate::model::{MountName, text};
use crate::policy::Action;

/// The name of the tool.
pub(super) const NAME: &str = "search_resources";

/// Matches per result: the default and the maximum.
const LIMITS: (usize, usize) = (20, 50);

/// Most characters of a query.
const QUERY_LENGTH: usize = 256;

/// Most words of a query.
const QUERY_WORDS: usize = 16;

/// The definition that clients see.
pub(super) fn definition() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": QUERY_LENGTH, "description": "Words that must all occur, in any order and either case. No operators." },
            "mount": { "type": "string", "description": "Search only this mount." },
            "content": { "type": "boolean", "default": false, "description": "Also search contents, if the operator allows it. Slower." },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMITS.1, "default": LIMITS.0 }
        },
        "required": ["query"],
        "additionalProperties": false
    });
    tool(
        NAME,
        "Search resources",
        "Finds resources by words in their title, name, description and URI, best matches first; with content = true also in their text. To see all resources use list_resources. The result names the parts that were not searched.",
        input,
    )
}

/// Runs the tool.
pub(super) async fn run(
    handler: &Handler,
    context: &RequestContext<'_>,
    mut given: Arguments,
) -> Result<ToolContent, ErrorData> {
    let query = given.required("query", "the words to look for")?;
    let only = given.text("mount", mount::EXPECTED, |name| MountName::new(name).ok())?;
    let contents = given.flag("content")?;
    let most = given.number("limit", 1..=LIMITS.1, LIMITS.0)?;
    let words: Vec<_> = query.split_whitespace().map(folded).collect();
    if words.is_empty() || words.len() > QUERY_WORDS || query.chars().count() > QUERY_LENGTH {
        return Err(given.malformed("query", &format!("1 to {QUERY_WORDS} words, at most {QUERY_LENGTH} characters")));
    }
    given.refuse_unknown()?;
    if let Some(name) = &only {
        mount::check(handler, &context.caller.principal, NAME, name).await?;
    }
    let counted = handler.gateway.count_action(&context.caller, Action::Search, only.as_ref()).await;
    let quota = counted.map_err(fault::to_error)?;
    let found =
        handler.gateway.search(&context.caller, &SearchRequest { words, only, contents, max_matches: most }).await;
    let content = content(found);
    quota.charge(text_bytes(&content)).await;
    Ok(content)
}

fn content(found: SearchResults) -> ToolContent {
    let gaps: Vec<_> = found.gaps.iter().map(|gap| text::excerpt(gap, NOTICE_LENGTH)).collect();
    let mut lines = vec![match (found.matches.len(), found.total) {
        (0, _) => "No matches.".to_owned(),
        (shown, total) if shown < total => format!("The best {shown} of {total} matches:"),
        (1, _) => "One match:".to_owned(),
        (shown, _) => format!("{shown} matches:"),
    }];
    let mut links = Vec::new();
    for SearchMatch { resource, mount, field: place, snippet, .. } in found.matches {
        let entry = ToolEntry::of(resource, &mount);
        lines.push(format!("{}\n  in its {}: {snippet}", entry.line(), place.as_str()));
        links.push(entry.link());
    }
    lines.push(format!("Looked at {} resources, and into the contents of {}.", found.entries, found.read));
    lines.extend(gaps.iter().map(|gap| format!("not looked at: {gap}")));
    let mut content = vec![ContentBlock::text(lines.join("\n"))];
    content.append(&mut links);
    content
}
