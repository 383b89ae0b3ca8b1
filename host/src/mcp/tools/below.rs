//! `list_resources` with `below`: what is directly below a URI.

use rmcp::model::ErrorData;

use super::super::context::RequestContext;
use super::super::cursor::{BelowPosition, CursorKind};
use super::super::fault;
use super::super::handler::Handler;
use super::entry::{ToolContent, ToolEntry};
use super::list::{LIMITS, PAGE_LENGTH, ToolPage, content, notice_line};

/// Runs the tool. The provider's pages are larger than those of the tool, so a page begins at a page of the provider and a
/// number of entries to skip.
pub(super) async fn run(
    handler: &Handler,
    context: &RequestContext<'_>,
    uri: String,
    cursor: Option<String>,
    limit: Option<u32>,
) -> Result<ToolContent, ErrorData> {
    let (principal, kind) = (&context.caller.principal, CursorKind::ToolBelow);
    let start = match cursor {
        Some(cursor) => handler.cursors.open_below(kind, principal, &cursor, &uri),
        None => Ok(BelowPosition { uri, limit: limit.unwrap_or(LIMITS.0), ..BelowPosition::default() }),
    };
    let start = start.map_err(|why| fault::bad_cursor(&why))?;
    let below = handler.gateway.list_below(&context.caller, &start.uri, start.cursor.clone()).await;
    let below = below.map_err(fault::to_error)?;
    let mount = &below.mount.name;
    let mut page = ToolPage::default();
    if start.skip == 0 {
        page.notices.extend(below.notice.iter().map(|notice| notice_line(mount, notice)));
    }
    let wanted = usize::try_from(limit.unwrap_or(start.limit)).unwrap_or(LIMITS.1);
    let (mut taken, mut characters) = (0u32, 0);
    let mut entries = below.entries.into_iter().skip(start.skip as usize).peekable();
    while page.entries.len() < wanted
        && characters < PAGE_LENGTH
        && let Some(entry) = entries.next()
    {
        let entry = ToolEntry::of(entry, mount);
        characters += entry.estimated_length();
        page.entries.push(entry);
        taken += 1;
    }
    let next = match entries.peek() {
        Some(_) => Some(BelowPosition { skip: start.skip.saturating_add(taken), ..start }),
        None => below.next.map(|cursor| BelowPosition { cursor: Some(cursor), skip: 0, ..start }),
    };
    page.next = next.map(|next| handler.cursors.seal_below(kind, principal, &next));
    Ok(content(page, false))
}
