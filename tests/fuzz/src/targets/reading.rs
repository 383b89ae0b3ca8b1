//! The result of a read: `interfaces::resources`.

use std::sync::Arc;
use std::time::Duration;

use belljar::catalog::{ServedMount, Snapshot};
use belljar::interfaces::Function;
use belljar::interfaces::resources::Read;
use belljar::model::{Body, Contents, ReadError, Reading, reference};

use super::listing::{assert_meta, assert_mime};
use super::names::mount;
use crate::input::Fields;
use crate::oracle;

/// Fields: the requested reference; then, four for each piece of contents: reference, MIME type, key and value of `_meta`.
pub(super) fn reading(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let asked = fields.text();
    // Skip invalid references: the gateway checks the requested reference before it calls the guest.
    if reference::check(&asked).is_err() {
        return;
    }
    let mut contents = Vec::new();
    while !fields.is_empty() {
        contents.push(Contents {
            reference: fields.text(),
            mime_type: fields.option(),
            meta: vec![(fields.text(), fields.text())],
            body: Body::Text(contents.len().to_string()),
        });
    }
    let given = Reading { contents, fresh_for: Some(Duration::from_millis(5)), part: None };
    let own = mount("notes", "belljar://notes/");
    let snapshot = Snapshot::new(vec![Arc::clone(&own)], Vec::new());
    let fits = |c: &Contents| oracle::is_lawful(&c.reference) && oracle::is_below(&asked, &c.reference);
    let expected = !given.contents.is_empty() && given.contents.iter().all(fits);
    let read = Read { reference: asked.clone() };
    match read.check(given.clone(), &ServedMount { mount: &own, snapshot: &snapshot }) {
        Ok(passed) => {
            assert!(expected, "contents that are not below {asked:?} passed: {given:?}");
            assert_eq!(passed.contents.len(), given.contents.len());
            for (passed, given) in passed.contents.iter().zip(&given.contents) {
                assert_eq!(passed.reference, format!("{}{}", own.base, given.reference));
                assert!(passed.body == given.body, "the body was changed");
                assert_mime(passed.mime_type.as_deref());
                assert!(passed.mime_type.is_none() || passed.mime_type == given.mime_type);
                assert_meta(&passed.meta);
            }
        }
        Err(ReadError::BadOutput(why)) => {
            assert!(!expected, "{why}: for {given:?}");
            oracle::assert_plain(&why, "a refusal");
        }
        Err(other) => panic!("expected `BadOutput`, found {other:?}"),
    }
}
