//! `list_resources`: what there is, a page fit for a model at a time.

use rmcp::model::{ContentBlock, ErrorData, Tool};
use serde_json::json;

use super::super::cursor::Kind;
use super::super::{Asked, Handler, cursor, fault};
use super::arguments::Arguments;
use super::{Answered, Entry, MOUNT, NOTICE, known_mount, tool};
use crate::catalog::listing::Listed;
use crate::model::{MountName, Resource, Template, text};

/// Its name.
pub(super) const NAME: &str = "list_resources";

/// Entries of a page, and the most that can be asked for.
const LIMITS: (u32, usize) = (50, 200);

/// Characters of a page, after which it ends: entries may be long.
const PAGE: usize = 60_000;

/// Pages of the catalog that are looked at for one page of the tool, when they are empty.
const ROUNDS: usize = 4;

/// What it is, for a client.
pub(super) fn definition() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "mount": { "type": "string", "description": "Only this mount's." },
            "cursor": { "type": "string", "description": "The nextCursor of the page before, with the same other arguments; omit it to begin." },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMITS.1, "default": LIMITS.0 },
            "templates": { "type": "boolean", "default": false, "description": "List URI templates instead: patterns such as \"belljar://notes/{+path}\" that resources can be read by although they are not listed." }
        },
        "additionalProperties": false
    });
    tool(
        NAME,
        "List resources",
        "Lists the resources that can be read, by mount, with URI, title, type and size. Use it to see what there is; to find something by words use search_resources; to read one use read_resource.",
        input,
    )
}

/// Runs it.
pub(super) async fn run(handler: &Handler, asked: &Asked, mut given: Arguments) -> Result<Answered, ErrorData> {
    let only = given.text("mount", MOUNT, |name| MountName::new(name).ok())?;
    let cursor = given.text("cursor", "the \"nextCursor\" of the page before", |cursor| Some(cursor.to_owned()))?;
    // None where it is not given: a cursor knows it.
    let limit = u32::try_from(given.number("limit", 1..=LIMITS.1, 0)?).ok().filter(|limit| *limit > 0);
    let templates = given.flag("templates")?;
    given.finish()?;
    if let Some(name) = &only {
        known_mount(handler, NAME, name).await?;
    }
    let kind = if templates { Kind::ToolTemplates } else { Kind::ToolResources };
    let start = match cursor {
        Some(cursor) => {
            let mark = handler.cursors.open_mark(kind, &cursor);
            let fits = |mark: cursor::Mark| mark.is_of(only.as_ref(), limit).map(|()| mark);
            mark.and_then(fits).map_err(|why| fault::bad_cursor(&why))?
        }
        None => cursor::Mark { only, limit: limit.unwrap_or(LIMITS.0), ..cursor::Mark::default() },
    };
    let page = match templates {
        true => page::<Template>(handler, asked, kind, start, Entry::of_template).await,
        false => page::<Resource>(handler, asked, kind, start, Entry::of).await,
    };
    Ok(answer(page, templates))
}

/// One page of the tool.
struct Page {
    entries: Vec<Entry>,
    next: Option<String>,
    notices: Vec<String>,
}

/// Cuts a page out of the catalog's, which are larger: where it goes on is a page of the catalog and a number.
async fn page<T: Listed>(
    handler: &Handler,
    asked: &Asked,
    kind: Kind,
    mut start: cursor::Mark,
    shown: fn(T, &MountName) -> Entry,
) -> Page {
    let mut page = Page { entries: Vec::new(), next: None, notices: Vec::new() };
    let limit = usize::try_from(start.limit).unwrap_or(LIMITS.1);
    for _ in 0..ROUNDS {
        let listing = handler.gateway.list::<T>(&asked.caller, start.position.clone(), start.only.as_ref()).await;
        // Told once, with the first part of a page.
        if start.skip == 0 {
            let told =
                |(mount, reason): (MountName, String)| format!("mount \"{mount}\": {}", text::excerpt(&reason, NOTICE));
            page.notices.extend(listing.notices.into_iter().map(told));
        }
        let (mut taken, mut characters) = (0u32, 0);
        let mut entries = listing.entries.into_iter().skip(start.skip as usize).peekable();
        while page.entries.len() < limit
            && characters < PAGE
            && let Some((entry, mount)) = entries.next()
        {
            let entry = shown(entry, &mount);
            characters += entry.weight();
            page.entries.push(entry);
            taken += 1;
        }
        let next = match entries.peek() {
            Some(_) => Some(cursor::Mark { skip: start.skip.saturating_add(taken), ..start.clone() }),
            None => listing.next.map(|next| cursor::Mark { position: Some(next), skip: 0, ..start.clone() }),
        };
        page.next = next.as_ref().map(|next| handler.cursors.seal_mark(kind, next));
        match next {
            Some(next) if page.entries.is_empty() => start = next,
            _ => break,
        }
    }
    page
}

fn answer(page: Page, templates: bool) -> Answered {
    let what = if templates { "templates" } else { "resources" };
    let mut lines = vec![match (page.entries.len(), &page.next) {
        (0, None) => format!("No {what}."),
        (count, None) => format!("{count} {what}; there are no more."),
        (count, Some(_)) => format!("{count} {what}; there are more: call again with cursor = nextCursor."),
    }];
    let mut mount = None;
    for entry in &page.entries {
        // Not all have their mount's name in their URI.
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
