//! A page of the tool `list_resources`.

use rmcp::model::ContentBlock;

use super::entry::{NOTICE_LENGTH, ToolContent, ToolEntry};
use crate::catalog::Notice;
use crate::model::{MountName, text};

/// Entries per page: the default and the maximum.
pub(super) const LIMITS: (u32, usize) = (50, 200);

/// A page ends after this many characters, because single entries can be long.
pub(super) const PAGE_LENGTH: usize = 60_000;

/// One page of the tool.
#[derive(Default)]
pub(super) struct ToolPage {
    pub(super) entries: Vec<ToolEntry>,
    pub(super) next: Option<String>,
    pub(super) notices: Vec<String>,
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
