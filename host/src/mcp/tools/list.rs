//! `list_resources`: the resources or templates, in pages that fit into a model's context.

use rmcp::model::{ErrorData, Tool};
use serde::Serialize;
use serde_json::json;

use super::super::context::RequestContext;
use super::super::cursor::CursorKind;
use super::super::handler::Handler;
use super::super::{cursor, fault};
use super::arguments::Arguments;
use super::definition::tool;
use super::entry::{ToolContent, ToolEntry, text_bytes};
use super::page::{LIMITS, PAGE_LENGTH, ToolPage, content, notice_line};
use super::{below, mount};
use crate::catalog::listing::Listed;
use crate::gateway::OutdatedList;
use crate::model::{MountName, Resource, Template};
use crate::policy::Action;

/// The name of the tool.
pub(super) const NAME: &str = "list_resources";

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
    let page = page.map_err(|OutdatedList| fault::bad_cursor(&cursor::BadCursor::Outdated))?;
    let content = content(page, templates);
    quota.charge(text_bytes(&content)).await;
    Ok(content)
}

/// A hash of the entries of the catalog's page that earlier pages of the tool showed. Replicas compare it.
struct ShownBefore {
    hasher: Option<blake3::Hasher>,
    has_any: bool,
}

impl ShownBefore {
    fn new(is_checked: bool) -> Self {
        Self { hasher: is_checked.then(blake3::Hasher::new), has_any: false }
    }

    fn add(&mut self, entry: &impl Serialize) {
        if let Some(hasher) = &mut self.hasher {
            // Strings and numbers always serialise, and hashing cannot fail.
            let _ = serde_json::to_writer(hasher, entry);
            self.has_any = true;
        }
    }

    /// 0 before the first entry, and if nothing is checked.
    fn hash(&self) -> u64 {
        let mut hash = [0; 8];
        if let Some(hasher) = self.hasher.as_ref().filter(|_| self.has_any) {
            hasher.finalize_xof().fill(&mut hash);
        }
        u64::from_le_bytes(hash)
    }
}

/// Cuts a page of the tool out of the catalog's pages, which are larger. The next page begins at a page of the catalog
/// and a number of entries to skip.
async fn page<T: Listed>(
    handler: &Handler,
    context: &RequestContext<'_>,
    kind: CursorKind,
    mut start: cursor::ToolPosition,
    shown: fn(T, &MountName) -> ToolEntry,
) -> Result<ToolPage, OutdatedList> {
    let mut page = ToolPage::default();
    let limit = usize::try_from(start.limit).unwrap_or(LIMITS.1);
    for _ in 0..MAX_CATALOG_PAGES {
        let (position, only) = (start.position.clone(), start.only.as_ref());
        let listing = handler.gateway.list_from::<T>(&context.caller, position, only).await?;
        let mut entries = listing.entries.into_iter().peekable();
        let mut before = ShownBefore::new(handler.gateway.checks_cursors());
        entries.by_ref().take(start.skip as usize).for_each(|(entry, _)| before.add(&entry));
        if before.hash() != start.before {
            return Err(OutdatedList);
        }
        // Only the first part of a catalog's page repeats its notices.
        if start.skip == 0 {
            page.notices.extend(listing.notices.iter().map(|(mount, notice)| notice_line(mount, notice)));
        }
        let (mut taken, mut characters) = (0u32, 0);
        while page.entries.len() < limit
            && characters < PAGE_LENGTH
            && let Some((entry, mount)) = entries.next()
        {
            before.add(&entry);
            let entry = shown(entry, &mount);
            characters += entry.estimated_length();
            page.entries.push(entry);
            taken += 1;
        }
        let next = match entries.peek() {
            Some(_) => {
                let (skip, before) = (start.skip.saturating_add(taken), before.hash());
                Some(cursor::ToolPosition { skip, before, ..start.clone() })
            }
            None => listing.next.map(|next| cursor::ToolPosition {
                position: Some(next),
                skip: 0,
                before: 0,
                ..start.clone()
            }),
        };
        page.next = next.as_ref().map(|next| handler.cursors.seal_tool_position(kind, &context.caller.principal, next));
        match next {
            Some(next) if page.entries.is_empty() => start = next,
            _ => break,
        }
    }
    Ok(page)
}
