//! From the host's model to rmcp's types, by move.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    Annotations, CacheScope, Icon, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::Value;

use super::identity;
use crate::catalog::Mount;
use crate::gateway::Listing;
use crate::model::meta::{DIGEST, MOUNT, NOTICES};
use crate::model::{self, Body, MountName, Reading};

/// A listing is fresh for no time: it may change whenever a provider does.
const LIST_TTL: u64 = 0;

fn meta(entries: model::Meta, mount: &MountName) -> MetaObject {
    let mut meta = MetaObject::new();
    for (key, value) in entries {
        // Checked to be JSON when the provider's answer was.
        if let Ok(value) = serde_json::from_str::<Value>(&value) {
            meta.0.insert(key, value);
        }
    }
    meta.0.insert(MOUNT.to_owned(), mount.as_str().into());
    meta
}

fn annotations(given: model::Annotations) -> Annotations {
    let mut annotations = Annotations::default();
    if !given.audience.is_empty() {
        let role = |role: &model::Role| match role {
            model::Role::User => Role::User,
            model::Role::Assistant => Role::Assistant,
        };
        annotations.audience = Some(given.audience.iter().map(role).collect());
    }
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1; rmcp carries 32 bits")]
    let priority = given.priority.map(|priority| priority as f32);
    annotations.priority = priority;
    annotations.last_modified = given.last_modified;
    annotations
}

fn icons(given: Vec<model::Icon>) -> Option<Vec<Icon>> {
    let icon = |icon: model::Icon| {
        let mut out = Icon::new(icon.src);
        out.mime_type = icon.mime_type;
        out.sizes = (!icon.sizes.is_empty()).then_some(icon.sizes);
        out
    };
    (!given.is_empty()).then(|| given.into_iter().map(icon).collect())
}

fn resource((given, mount): (model::Resource, MountName)) -> Resource {
    let mut out = Resource::new(given.reference, given.name);
    out.title = given.title;
    out.description = given.description;
    out.mime_type = given.mime_type;
    out.size = given.size;
    out.annotations = given.annotations.map(annotations);
    out.icons = icons(given.icons);
    out.meta = Some(meta(given.meta, &mount));
    out
}

fn template((given, mount): (model::Template, MountName)) -> ResourceTemplate {
    let mut out = ResourceTemplate::new(given.template, given.name);
    out.title = given.title;
    out.description = given.description;
    out.mime_type = given.mime_type;
    out.annotations = given.annotations.map(annotations);
    out.icons = icons(given.icons);
    out.meta = Some(meta(given.meta, &mount));
    out
}

/// The `_meta` of a page: which mounts it has nothing of, or not all, and why.
fn notices(notices: Vec<(MountName, String)>) -> Option<MetaObject> {
    if notices.is_empty() {
        return None;
    }
    let mut meta = MetaObject::new();
    let one = |(mount, reason): (MountName, String)| serde_json::json!({ "mount": mount.as_str(), "reason": reason });
    meta.0.insert(NOTICES.to_owned(), notices.into_iter().map(one).collect());
    Some(meta)
}

/// A page of resources. Caching hints are of the 2026-07-28 revision; older peers do not get them.
pub(super) fn resources(
    listing: Listing<model::Resource>,
    next: Option<String>,
    is_modern: bool,
) -> ListResourcesResult {
    let mut out = ListResourcesResult::with_all_items(listing.entries.into_iter().map(resource).collect());
    out.next_cursor = next;
    out.meta = notices(listing.notices);
    identity::sign(&mut out.meta, is_modern);
    if is_modern {
        (out.ttl_ms, out.cache_scope) = (Some(LIST_TTL), Some(CacheScope::Private));
    }
    out
}

/// A page of templates.
pub(super) fn templates(
    listing: Listing<model::Template>,
    next: Option<String>,
    is_modern: bool,
) -> ListResourceTemplatesResult {
    let mut out = ListResourceTemplatesResult::with_all_items(listing.entries.into_iter().map(template).collect());
    out.next_cursor = next;
    out.meta = notices(listing.notices);
    identity::sign(&mut out.meta, is_modern);
    if is_modern {
        (out.ttl_ms, out.cache_scope) = (Some(LIST_TTL), Some(CacheScope::Private));
    }
    out
}

/// What a read gave. Private, unless the operator says otherwise of its mount.
pub(super) fn reading(reading: Reading, mount: &Mount, is_modern: bool) -> ReadResourceResult {
    let (mut out, contents) = apart(reading, mount, is_modern);
    let whole = |(mut given, body): (ResourceContents, Body)| {
        match (&mut given, body) {
            (ResourceContents::TextResourceContents { text, .. }, Body::Text(body)) => *text = body,
            (ResourceContents::BlobResourceContents { blob, .. }, Body::Blob(body)) => *blob = STANDARD.encode(body),
            _ => {}
        }
        given
    };
    out.contents = contents.into_iter().map(whole).collect();
    out
}

/// The same with the bodies beside what they belong to: no contents in the result, and nothing in each of these.
pub(super) fn apart(
    reading: Reading,
    mount: &Mount,
    is_modern: bool,
) -> (ReadResourceResult, Vec<(ResourceContents, Body)>) {
    let digest = mount.digest.to_string();
    let contents = reading.contents.into_iter().map(|given| {
        let mut meta = meta(given.meta, &mount.name);
        meta.0.insert(DIGEST.to_owned(), digest.clone().into());
        let (uri, mime_type, meta) = (given.reference, given.mime_type, Some(meta));
        let empty = match given.body {
            Body::Text(_) => ResourceContents::TextResourceContents { uri, mime_type, text: String::new(), meta },
            Body::Blob(_) => ResourceContents::BlobResourceContents { uri, mime_type, blob: String::new(), meta },
        };
        (empty, given.body)
    });
    let contents = contents.collect();
    let mut out = ReadResourceResult::new(Vec::new());
    identity::sign(&mut out.meta, is_modern);
    if is_modern {
        let fresh = reading.fresh_for.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let scope = if mount.cache.public { CacheScope::Public } else { CacheScope::Private };
        (out.ttl_ms, out.cache_scope) = (Some(fresh), Some(scope));
    }
    (out, contents)
}
