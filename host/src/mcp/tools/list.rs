//! `list_resources`: the resources or templates, in pages that fit into a model's context.

use rmcp::model::{ContentBlock, ErrorData, Tool};
use serde_json::json;

use super::super::context::RequestContext;
use super::super::cursor::CursorKind;
use super::super::handler::Handler;
use super::super::{cursor, fault};
use super::arguments::Arguments;
use super::definition::tool;
use super::entry::{NOTICE_LENGTH, ToolContent, ToolEntry, text_bytes};
use super::{below, mount};
use crate::catalog::Notice;
use crate::catalog::listing::Listed;
use crate::model::{MountName, Resource, Template, text};
use crate::policy::Action;

/// The name of the tool.
pub(super) const NAME: &str = "list_resources";

/// Entries per page: the default and the maximum.
pub(super) const LIMITS: (u32, usize) = (50, 200);

/// A page ends after this many characters, because single entries can be long.
pub(super) const PAGE_LENGTH: usize = 60_000;

/// Most pages of the catalog that one call lists, if the first ones are empty.
const MAX_CATALOG_PAGES: usize = 4;

/// The definition that clients see.
pub(super) fn definition() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "mount": { "type": "string", "description": "List only this mount." },
            "below": { "type": "string", "description": "List only what is directly below this URI: the entries of a directory, the tables of a database. Not with mount or templates." },
            "cursor": { "type": "string", "description": "The nextCursor of the previous page, with the same other arguments. Omit it for the first page." },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMITS.1, "default": LIMITS.0 },
            "templates": { "type": "boolean", "default": false, "description": "List URI templates instead: patterns such as \"belljar://notes/{+path}\" for resources that can be read although they are not listed." }
        },
        "additionalProperties": false
    });
    tool(
        NAME,
        "List resources",
        "Lists the resources that can be read, by mount, with URI, title, type and size. Use it to see all resources; to find some by words use search_resources; to read one use read_resource.",
        input,
    )
}

/// Runs the tool.
pub(super) async fn run(
    handler: &Handler,
    context: &RequestContext<'_>,
    mut given: Arguments,
) -> Result<ToolContent, ErrorData> {
    let only = given.text("mount", mount::EXPECTED, |name| MountName::new(name).ok())?;
    let cursor = given.text("cursor", "the \"nextCursor\" of the previous page", |cursor| Some(cursor.to_owned()))?;
    // An absent limit is `None`: the cursor contains the limit of its pages.
    let limit = u32::try_from(given.number("limit", 1..=LIMITS.1, 0)?).ok().filter(|limit| *limit > 0);
    let templates = given.flag("templates")?;
    let below = given.text("below", "the URI of a directory", |uri| Some(uri.to_owned()))?;
    given.refuse_unknown()?;
    if let Some(uri) = below {
        if only.is_some() || templates {
            let why =
                "the argument \"below\" selects the list by itself; call again without \"mount\" and \"templates\"";
            return Err(fault::bad_argument(why));
        }
        return below::run(handler, context, uri, cursor, limit).await;
    }
    if let Some(name) = &only {
        mount::check(handler, &context.caller.principal, NAME, name).await?;
    }
    let kind = if templates { CursorKind::ToolTemplates } else { CursorKind::ToolResources };
    let start = match cursor {
        Some(cursor) => {
            let position = handler.cursors.open_tool_position(kind, &context.caller.principal, &cursor);
            let fits = |position: cursor::ToolPosition| position.check_list(only.as_ref(), limit).map(|()| position);
            position.and_then(fits).map_err(|why| fault::bad_cursor(&why))?
        }
        None => cursor::ToolPosition { only, limit: limit.unwrap_or(LIMITS.0), ..cursor::ToolPosition::default() },
    };
    let counted = handler.gateway.count_action(&context.caller, Action::List, start.only.as_ref()).await;
    let quota = counted.map_err(fault::to_error)?;
    let page = match templates {
        true => page::<Template>(handler, context, kind, start, ToolEntry::of_template).await,
        false => page::<Resource>(handler, context, kind, start, ToolEntry::of).await,
    };
    let content = content(page, templates);
    quota.charge(text_bytes(&content)).await;
    Ok(content)
}

/// One page of the tool.
#[derive(Default)]
pub(super) struct ToolPage {
    pub(super) entries: Vec<ToolEntry>,
    pub(super) next: Option<String>,
    pub(super) notices: Vec<String>,
}

/// Cuts a page of the tool out of the catalog's pages, which are larger. The next page begins at a page of the catalog
/// and a number of entries to skip.
async fn page<T: Listed>(
    handler: &Handler,
    context: &RequestContext<'_>,
    kind: CursorKind,
    mut start: cursor::ToolPosition,
    shown: fn(T, &MountName) -> ToolEntry,
) -> ToolPage {
    let mut page = ToolPage::default();
    let limit = usize::try_from(start.limit).unwrap_or(LIMITS.1);
    for _ in 0..MAX_CATALOG_PAGES {
        let listing = handler.gateway.list::<T>(&context.caller, start.position.clone(), start.only.as_ref()).await;
        // Only the first part of a catalog's page repeats its notices.
        if start.skip == 0 {
            page.notices.extend(listing.notices.iter().map(|(mount, notice)| notice_line(mount, notice)));
        }
        let (mut taken, mut characters) = (0u32, 0);
        let mut entries = listing.entries.into_iter().skip(start.skip as usize).peekable();
        while page.entries.len() < limit
            && characters < PAGE_LENGTH
            && let Some((entry, mount)) = entries.next()
        {
            let entry = shown(entry, &mount);
            characters += entry.estimated_length();
            page.entries.push(entry);
            taken += 1;
        }
        let next = match entries.peek() {
            Some(_) => Some(cursor::ToolPosition { skip: start.skip.saturating_add(taken), ..start.clone() }),
            None => listing.next.map(|next| cursor::ToolPosition { position: Some(next), skip: 0, ..start.clone() }),
        };
        page.next = next.as_ref().map(|next| handler.cursors.seal_tool_position(kind, &context.caller.principal, next));
        match next {
            Some(next) if page.entries.is_empty() => start = next,
            _ => break,
        }
    }
    page
}

/// A notice as the tool shows it.
pub(super) fn notice_line(mount: &MountName, notice: &Notice) -> String {
    format!("mount \"{mount}\": {}", text::excerpt(&notice.to_string(), NOTICE_LENGTH))
}

/// The content of the result.
pub(super) fn content(page: ToolPage, templates: bool) -> ToolContent {
    let what = if templates { "templates" } else { "resources" };
    let mut lines = vec![match (page.entries.len(), &page.next) {
        (0, None) => format!("No {what}."),
        (count, None) => format!("{count} {what}; there are no more."),
        (count, Some(_)) => format!("{count} {what}; there are more: call again with cursor = nextCursor."),
    }];
    let mut mount = None;
    for entry in &page.entries {
        // Some mounts have a base URI without their name.
        if mount.replace(&entry.mount) != Some(&entry.mount) {
            lines.push(format!("mount {}:", entry.mount));
        }
        lines.push(if templates { entry.described_line() } else { entry.line() });
    }
    if let Some(next) = &page.next {
        lines.push(format!("nextCursor: {next}"));
    }
    lines.extend(page.notices.iter().map(|notice| format!("left out: {notice}")));
    vec![ContentBlock::text(lines.join("\n"))]
}
