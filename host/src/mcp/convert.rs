//! Converts the host's model to rmcp's types, without copies.

use rmcp::model::{
    Annotations, CacheScope, Icon, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::Value;

use super::era::Era;
use super::{bodies, identity};
use crate::catalog::{Mount, Notice};
use crate::gateway::ListPage;
use crate::model::meta::{DIGEST, MOUNT, NOTICES, PART};
use crate::model::part::Part;
use crate::model::{self, Body, MountName, Reading};

/// `ttlMs` of a list. A provider can change its list at any time, so clients must not cache it.
pub(super) const LIST_TTL: u64 = 0;

/// The `_meta` of something of `mount`.
pub(super) fn meta(entries: model::Meta, mount: &MountName) -> MetaObject {
    let mut meta = MetaObject::new();
    for (key, value) in entries {
        // The value is JSON: the host checked it when the provider gave it.
        if let Ok(value) = serde_json::from_str::<Value>(&value) {
            meta.0.insert(key, value);
        }
    }
    meta.0.insert(MOUNT.to_owned(), mount.as_str().into());
    meta
}

/// Hints for clients.
pub(super) fn annotations(given: model::Annotations) -> Annotations {
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

/// Pictures; `None` if there are none.
pub(super) fn icons(given: Vec<model::Icon>) -> Option<Vec<Icon>> {
    let icon = |icon: model::Icon| {
        let mut out = Icon::new(icon.src);
        out.mime_type = icon.mime_type;
        out.sizes = (!icon.sizes.is_empty()).then_some(icon.sizes);
        out
    };
    (!given.is_empty()).then(|| given.into_iter().map(icon).collect())
}

/// An entry of a list.
pub(super) fn resource((given, mount): (model::Resource, MountName)) -> Resource {
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

/// The `_meta` of a page: the mounts that the page lacks, wholly or in part, and the reasons.
pub(super) fn notices(notices: Vec<(MountName, Notice)>) -> Option<MetaObject> {
    if notices.is_empty() {
        return None;
    }
    let mut meta = MetaObject::new();
    let one = |(mount, notice): (MountName, Notice)| serde_json::json!({ "mount": mount.as_str(), "reason": notice.to_string() });
    meta.0.insert(NOTICES.to_owned(), notices.into_iter().map(one).collect());
    Some(meta)
}

/// A page of resources. Only revision 2026-07-28 has caching hints; older clients do not get them.
pub(super) fn resources(listing: ListPage<model::Resource>, next: Option<String>, era: Era) -> ListResourcesResult {
    let mut out = ListResourcesResult::with_all_items(listing.entries.into_iter().map(resource).collect());
    out.next_cursor = next;
    out.meta = notices(listing.notices);
    identity::add_server_info(&mut out.meta, era);
    if era.is_stateless() {
        (out.ttl_ms, out.cache_scope) = (Some(LIST_TTL), Some(CacheScope::Private));
    }
    out
}

/// A page of templates.
pub(super) fn templates(
    listing: ListPage<model::Template>,
    next: Option<String>,
    era: Era,
) -> ListResourceTemplatesResult {
    let mut out = ListResourceTemplatesResult::with_all_items(listing.entries.into_iter().map(template).collect());
    out.next_cursor = next;
    out.meta = notices(listing.notices);
    identity::add_server_info(&mut out.meta, era);
    if era.is_stateless() {
        (out.ttl_ms, out.cache_scope) = (Some(LIST_TTL), Some(CacheScope::Private));
    }
    out
}

/// Bytes that all bodies of a reading take in a message, without escapes.
pub(super) fn encoded_len(reading: &Reading) -> usize {
    reading.contents.iter().map(|contents| bodies::encoded_len(&contents.body)).sum()
}

fn part_meta(part: &Part, uri: &str) -> Value {
    let mut out = serde_json::Map::new();
    out.insert("unit".to_owned(), part.unit.name().into());
    if let Some((first, last)) = part.shown() {
        out.insert("first".to_owned(), first.into());
        out.insert("last".to_owned(), last.into());
    }
    out.extend(part.total.map(|total| ("total".to_owned(), total.into())));
    out.extend(part.next_of(uri).map(|next| ("next".to_owned(), next.into())));
    out.into()
}

/// Says after a cut resource where the rest is. Programs that do not know `_meta` pass it on to their user. A client that
/// asked for a range expects only the range.
fn rest_notice(part: Part, contents: &model::Contents) -> Option<model::Contents> {
    let next = part.requested.is_none().then(|| part.next_of(&contents.reference))??;
    let text = format!("This is a part of the resource: {part}. The next part is {next}");
    Some(model::Contents {
        reference: contents.reference.clone(),
        mime_type: Some("text/plain".to_owned()),
        body: Body::Text(text),
        meta: model::Meta::default(),
    })
}

/// Adds what follows the contents of a reading in its result: where the rest of a cut resource is.
pub(super) fn add_rest_notice(reading: &mut Reading) {
    reading.contents.extend(reading.part.and_then(|part| rest_notice(part, reading.contents.first()?)));
}

/// The `_meta` of contents of `mount` with this reference.
pub(super) fn contents_meta(given: model::Meta, mount: &Mount, part: Option<Part>, reference: &str) -> MetaObject {
    let mut meta = meta(given, &mount.name);
    meta.0.insert(DIGEST.to_owned(), mount.digest.to_string().into());
    meta.0.extend(part.map(|part| (PART.to_owned(), part_meta(&part, reference))));
    meta
}

/// The milliseconds for which a client may take a reading as fresh.
pub(super) fn fresh_ms(reading: &Reading) -> u64 {
    reading.fresh_for.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The result of a read.
pub(super) fn reading(mut reading: Reading, mount: &Mount, (era, scope): (Era, CacheScope)) -> ReadResourceResult {
    add_rest_notice(&mut reading);
    let (part, fresh) = (reading.part, fresh_ms(&reading));
    let contents = reading.contents.into_iter().map(|given| {
        let meta = contents_meta(given.meta, mount, part, &given.reference);
        let (uri, mime_type, meta) = (given.reference, given.mime_type, Some(meta));
        let is_text = matches!(given.body, Body::Text(_));
        let body = bodies::encode(given.body);
        match is_text {
            true => ResourceContents::TextResourceContents { uri, mime_type, text: body, meta },
            false => ResourceContents::BlobResourceContents { uri, mime_type, blob: body, meta },
        }
    });
    let mut out = ReadResourceResult::new(contents.collect());
    identity::add_server_info(&mut out.meta, era);
    if era.is_stateless() {
        (out.ttl_ms, out.cache_scope) = (Some(fresh), Some(scope));
    }
    out
}
