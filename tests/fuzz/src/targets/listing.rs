//! Entries of a provider's listing: `catalog::listing`.

use std::collections::HashSet;

use belljar::catalog::{Mount, ServedMount, Snapshot};
use belljar::interfaces::ListEntry;
use belljar::model::{Annotations, Icon, Meta, Resource, Role, Template, reference};

use super::names::mount;
use crate::input::Fields;
use crate::oracle;

/// Fields: a number that selects the mount; then the fields of an entry. A resource and a template are made from the same
/// fields.
pub(super) fn listing(bytes: &[u8]) {
    let bases = ["belljar://a/", "belljar://a/inner/", "test://", "urn:d:"];
    let mounts = bases.iter().enumerate().map(|(at, base)| mount(&format!("m{at}"), base)).collect();
    let snapshot = Snapshot::new(mounts, Vec::new());
    let mut fields = Fields::of(bytes);
    let own = &snapshot.mounts()[usize::try_from(fields.number()).unwrap_or_default() % bases.len()];
    let resource = Resource {
        reference: fields.text(),
        name: fields.text(),
        title: fields.option(),
        description: fields.option(),
        mime_type: fields.option(),
        size: Some(fields.number()),
        annotations: Some(Annotations {
            priority: Some(f64::from_bits(fields.number())),
            last_modified: fields.option(),
            audience: fields.bytes().iter().map(|b| if b & 1 == 0 { Role::User } else { Role::Assistant }).collect(),
        }),
        icons: vec![Icon { src: fields.text(), mime_type: fields.option(), sizes: vec![fields.text()] }],
        meta: rest(&mut fields),
    };
    let template = Template {
        template: resource.reference.clone(),
        name: resource.name.clone(),
        title: resource.title.clone(),
        description: resource.description.clone(),
        mime_type: resource.mime_type.clone(),
        annotations: resource.annotations.clone(),
        icons: resource.icons.clone(),
        meta: resource.meta.clone(),
    };
    let given = resource.reference.clone();
    match resource.check(&ServedMount { mount: own, snapshot: &snapshot }) {
        Ok(resource) => {
            assert_eq!(resource.reference, format!("{}{given}", own.base), "the reference below the base of its mount");
            let (owner, rest) = snapshot.route(&resource.reference).expect("routed");
            assert_eq!(
                (&owner.name, rest),
                (&own.name, given.as_str()),
                "a read of the URI leads back to the mount and the reference"
            );
            assert!(oracle::is_lawful(rest), "{rest:?}");
            assert!(resource.weight() >= resource.key().len());
            assert!(resource.size.is_none_or(|size| size < 1 << 53));
            let texts = [Some(resource.name), resource.title, resource.description];
            assert_fields(texts, resource.mime_type, resource.annotations, &resource.icons, &resource.meta);
        }
        Err(why) => oracle::assert_plain(&why.to_string(), "a refusal"),
    }
    match template.check(&ServedMount { mount: own, snapshot: &snapshot }) {
        Ok(template) => {
            assert_eq!(template.template, format!("{}{given}", own.base));
            assert!(literal_is_own(&template.template, own, &snapshot), "{:?}", template.template);
            let texts = [Some(template.name), template.title, template.description];
            assert_fields(texts, template.mime_type, template.annotations, &template.icons, &template.meta);
        }
        Err(why) => oracle::assert_plain(&why.to_string(), "a refusal"),
    }
}

fn literal_is_own(template: &str, own: &Mount, snapshot: &Snapshot) -> bool {
    let literal = template.split('{').next().unwrap_or_default();
    literal.len() <= reference::MAX_URI && snapshot.route(literal).is_some_and(|(owner, _)| owner.name == own.name)
}

/// The rest of the input as pairs of a key and a value.
pub(super) fn rest(fields: &mut Fields<'_>) -> Meta {
    let mut meta = Meta::new();
    while !fields.is_empty() {
        meta.push((fields.text(), fields.text()));
    }
    meta
}

/// Checks the fields of an entry that clients get.
fn assert_fields(
    texts: [Option<String>; 3],
    mime: Option<String>,
    annotations: Option<Annotations>,
    icons: &[Icon],
    meta: &Meta,
) {
    let [name, title, description] = texts;
    let name = name.expect("an entry has a name");
    assert!(!name.trim().is_empty() && name.chars().count() <= 256, "the name {name:?}");
    for (text, max) in [(Some(name), 256), (title, 256), (description, 4096)] {
        let text = text.unwrap_or_default();
        oracle::assert_plain(&text, "a text");
        assert!(text.chars().count() <= max, "{} characters", text.chars().count());
    }
    assert_mime(mime.as_deref());
    if let Some(Annotations { audience, priority, last_modified }) = annotations {
        assert!(audience.len() <= 2 && priority.is_none_or(|p| (0.0..=1.0).contains(&p)));
        assert!(last_modified.is_none_or(|at| at.len() <= 40 && at.is_ascii() && at.contains('-')));
    }
    for icon in icons {
        let src = icon.src.to_ascii_lowercase();
        assert!(src.starts_with("https://") || src.starts_with("data:"), "the icon {src:?}");
        assert!(icon.src.bytes().all(|b| b.is_ascii_graphic()), "the icon {:?}", icon.src);
        assert_mime(icon.mime_type.as_deref());
        assert!(icon.sizes.iter().all(|size| size.len() <= 11 && size.is_ascii()), "{:?}", icon.sizes);
    }
    assert_meta(meta);
}

/// Checks that an accepted MIME type is exactly one value of a header field.
pub(super) fn assert_mime(mime: Option<&str>) {
    let Some(mime) = mime else { return };
    let fine = |b: u8| b.is_ascii_graphic() || b == b' ';
    assert!(mime.len() <= 127 && mime.contains('/') && mime.bytes().all(fine), "the MIME type {mime:?}");
}

/// Checks that accepted `_meta` has valid keys, each once, and JSON values. No key may be reserved by the protocol or belljar.
pub(super) fn assert_meta(meta: &Meta) {
    let mut seen = HashSet::new();
    assert!(meta.len() <= 32 && meta.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= 16 << 10);
    for (key, value) in meta {
        assert!(seen.insert(key), "{key:?} twice");
        assert!(key.len() <= 128 && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b)), "{key:?}");
        let lower = key.to_ascii_lowercase();
        match lower.split_once('/') {
            None => assert!(
                !["progresstoken", "traceparent", "tracestate", "baggage", "ui"].contains(&lower.as_str()),
                "{key:?}"
            ),
            Some((prefix, _)) => {
                let second = prefix.split('.').nth(1).unwrap_or_default();
                assert!(!["modelcontextprotocol", "mcp"].contains(&second), "{key:?}");
                assert!(!format!("{prefix}.").starts_with("dev.belljar.") && prefix != "belljar", "{key:?}");
            }
        }
        assert!(serde_json::from_str::<serde_json::Value>(value).is_ok(), "{value:?}");
    }
}
