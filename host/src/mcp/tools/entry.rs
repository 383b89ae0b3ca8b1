//! How tools show a resource or a template to a model: as one line, or as a `resource_link`.

use rmcp::model::{ContentBlock, Resource};
use serde_json::Value;

use crate::model::error::show_bytes;
use crate::model::{self, MountName, text};

/// The most characters of a name or title.
const NAME_LENGTH: usize = 120;

/// The most characters of the reason for a gap in a list.
pub(super) const NOTICE_LENGTH: usize = 300;

/// The content blocks of a tool's result.
pub(super) type ToolContent = Vec<ContentBlock>;

/// The bytes of the texts of a result.
pub(super) fn text_bytes(content: &[ContentBlock]) -> usize {
    content.iter().filter_map(ContentBlock::as_text).map(|text| text.text.len()).sum()
}

/// A resource or template as tools show it.
pub(super) struct ToolEntry {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) mount: MountName,
}

/// The most characters of a description.
const DESCRIPTION_LENGTH: usize = 160;

fn shown_description(given: Option<String>) -> Option<String> {
    given.filter(|text| !text.trim().is_empty()).map(|text| text::excerpt(&text, DESCRIPTION_LENGTH))
}

impl ToolEntry {
    pub(super) fn empty(mount: &MountName) -> Self {
        Self {
            uri: String::new(),
            name: String::new(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            mount: mount.clone(),
        }
    }

    pub(super) fn of(given: model::Resource, mount: &MountName) -> Self {
        Self {
            uri: given.reference,
            name: text::excerpt(&given.name, NAME_LENGTH),
            title: given.title.map(|title| text::excerpt(&title, NAME_LENGTH)).filter(|title| !title.trim().is_empty()),
            description: shown_description(given.description),
            mime_type: given.mime_type,
            size: given.size,
            ..Self::empty(mount)
        }
    }

    pub(super) fn of_template(given: model::Template, mount: &MountName) -> Self {
        Self {
            uri: given.template,
            name: given.name,
            title: given.title,
            description: shown_description(given.description),
            mime_type: given.mime_type,
            ..Self::empty(mount)
        }
    }

    /// One line: URI, title, type and size. The title is text of the provider. It is written as a JSON string, so that
    /// it cannot end its quotes.
    pub(super) fn line(&self) -> String {
        let title = Value::from(self.title.as_ref().unwrap_or(&self.name).as_str());
        let size = self.size.map(show_bytes);
        let facts: Vec<_> = [self.mime_type.as_deref(), size.as_deref()].into_iter().flatten().collect();
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        format!("{} {title}{facts}", self.uri)
    }

    /// [`ToolEntry::line`] with the provider's description: only the description explains the variables of a template.
    pub(super) fn described_line(&self) -> String {
        let about = self.description.as_ref().map(|about| format!(": {}", Value::from(about.as_str())));
        format!("{}{}", self.line(), about.unwrap_or_default())
    }

    /// An estimate of the entry's length in a result, in bytes.
    pub(super) fn estimated_length(&self) -> usize {
        let more = [&self.title, &self.description, &self.mime_type];
        self.uri.len() + self.name.len() + more.into_iter().flatten().map(String::len).sum::<usize>()
    }

    /// The entry as a `resource_link`.
    pub(super) fn link(self) -> ContentBlock {
        let mut out = Resource::new(self.uri, self.name);
        (out.title, out.mime_type, out.size) = (self.title, self.mime_type, self.size);
        ContentBlock::resource_link(out)
    }
}
