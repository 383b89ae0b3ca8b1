//! Cleans the fields that providers return, and measures their sizes.

use iri_string::types::UriStr;
use mediatype::MediaType;

use crate::model::{Annotations, Guard, Icon, Meta, meta, text};

/// The most characters of a name or a title.
const MAX_NAME: usize = 256;

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 4096;

/// The most icons of an entry.
const MAX_ICONS: usize = 8;

/// The most bytes of an icon's source.
const MAX_ICON_BYTES: usize = 8 << 10;

/// The most `_meta` entries of one item.
const MAX_META: usize = 32;

/// The most bytes of all `_meta` entries of one item.
const MAX_META_BYTES: usize = 16 << 10;

/// The largest integer that every JSON parser represents exactly (2^53 - 1).
pub(super) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The charge for an entry, in bytes, beside its texts. Without it, a million empty entries would be free.
pub(super) const ENTRY_CHARGE: usize = 64;

/// The size of an optional text, in bytes.
pub(super) fn text_bytes(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

/// The size of `_meta` entries, in bytes.
pub(super) fn meta_bytes(meta: &Meta) -> usize {
    meta.iter().map(|(key, value)| key.len() + value.len() + ENTRY_CHARGE).sum()
}

/// The size of icons, in bytes.
pub(super) fn icon_bytes(icons: &[Icon]) -> usize {
    icons.iter().map(|icon| icon.src.len() + ENTRY_CHARGE).sum()
}

/// Cleans a name or title.
pub(super) fn clean_name(given: String) -> String {
    text::cleaned(given, MAX_NAME)
}

/// Cleans a description.
pub(super) fn clean_description(given: String) -> String {
    text::cleaned(given, MAX_DESCRIPTION)
}

/// The name of an entry; its URI if the name is empty.
pub(super) fn name_or_uri(name: String, otherwise: &str) -> String {
    if name.trim().is_empty() { text::excerpt(otherwise, MAX_NAME) } else { name }
}

/// The MIME type, if it has the syntax of RFC 6838.
pub fn valid_mime_type(given: Option<String>) -> Option<String> {
    // The parser accepts tabs at the end.
    let is_plain = |mime: &str| mime.bytes().all(|b| (b' '..=b'~').contains(&b));
    let is_good = |mime: &String| mime.len() <= 127 && is_plain(mime) && MediaType::parse(mime).is_ok();
    given.filter(|mime| is_good(mime) || !Guard::Mime.is_on())
}

/// Applies `clean` to a field, unless the guard is switched off by a test.
pub(super) fn unless_unguarded<T>(given: T, clean: impl FnOnce(T) -> T) -> T {
    if Guard::Fields.is_on() { clean(given) } else { given }
}

/// Annotations without the values that break a rule.
pub(super) fn clean_annotations(mut given: Annotations) -> Option<Annotations> {
    given.audience.dedup();
    given.audience.truncate(2);
    given.priority = given.priority.filter(|priority| (0.0..=1.0).contains(priority));
    given.last_modified =
        given.last_modified.filter(|at| at.len() <= 40 && chrono::DateTime::parse_from_rfc3339(at).is_ok());
    let empty = given.audience.is_empty() && given.priority.is_none() && given.last_modified.is_none();
    (!empty).then_some(given)
}

/// Icons, without those that break a rule.
pub(super) fn clean_icons(given: Vec<Icon>) -> Vec<Icon> {
    let fine = |icon: &Icon| {
        let scheme = icon.src.get(..8).unwrap_or(&icon.src).to_ascii_lowercase();
        icon.src.len() <= MAX_ICON_BYTES
            && (scheme.starts_with("https://") || scheme.starts_with("data:"))
            && UriStr::new(&icon.src).is_ok()
    };
    let sizes = |sizes: Vec<String>| sizes.into_iter().filter(|s| s == "any" || is_size(s)).take(8).collect();
    given
        .into_iter()
        .filter(fine)
        .take(MAX_ICONS)
        .map(|icon| Icon { mime_type: valid_mime_type(icon.mime_type), sizes: sizes(icon.sizes), src: icon.src })
        .collect()
}

fn is_size(size: &str) -> bool {
    size.split_once('x')
        .is_some_and(|(w, h)| w.len() <= 5 && h.len() <= 5 && w.parse::<u32>().is_ok() && h.parse::<u32>().is_ok())
}

/// `_meta` entries with a name that a provider may use ([`meta::is_free`]) and one JSON value each.
pub fn clean_meta(given: Meta) -> Meta {
    unless_unguarded(given, free_meta)
}

fn free_meta(given: Meta) -> Meta {
    let mut bytes = 0;
    let mut seen: Vec<String> = Vec::new();
    given
        .into_iter()
        .filter(|(key, value)| {
            bytes += key.len() + value.len();
            let fine = bytes <= MAX_META_BYTES
                && meta::is_free(key)
                && !seen.contains(key)
                && serde_json::from_str::<serde_json::Value>(value).is_ok();
            if fine {
                seen.push(key.clone());
            }
            fine
        })
        .take(MAX_META)
        .collect()
}
