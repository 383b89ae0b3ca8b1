//! Which entries of a provider are served, and in which form.

use std::sync::Arc;

use super::super::mount::tests::mount;
use super::*;
use crate::catalog::{ServedMount, Snapshot};
use crate::interfaces::EntryError;
use crate::model::{Annotations, Icon, Role};

fn snapshot() -> Snapshot {
    Snapshot::new(
        vec![Arc::new(mount("a", "belljar://a/")), Arc::new(mount("inner", "belljar://a/inner/"))],
        Vec::new(),
    )
}

fn resource(reference: &str) -> Resource {
    Resource::named(reference, "n")
}

fn check(resource: Resource) -> Result<Resource, EntryError> {
    let snapshot = snapshot();
    resource.check(&ServedMount { mount: &snapshot.mounts()[0], snapshot: &snapshot })
}

#[test]
fn names_are_made_absolute_and_stay_in_their_mount() {
    assert_eq!(check(resource("x/y.md")).unwrap().reference, "belljar://a/x/y.md");
    for bad in ["../x", "/x", "foo bar", "x#y", "javascript:alert(1)", "file:///etc/passwd", "é"] {
        assert!(check(resource(bad)).is_err(), "{bad}");
    }
    assert!(check(resource("inner/x")).unwrap_err().to_string().contains("belongs to mount \"inner\""));
    assert!(check(resource(&"a".repeat(2048))).unwrap_err().to_string().contains("longer than"));
}

#[test]
fn texts_and_fields_are_cleaned() {
    let mut given = resource("x");
    given.name = "a\x1b[31m\u{202e}b\n".to_owned();
    given.title = Some("t".repeat(1000));
    given.description = Some("d".repeat(5000));
    given.mime_type = Some("text/html\r\nX: y".to_owned());
    given.size = Some(u64::MAX);
    given.annotations = Some(Annotations {
        audience: vec![Role::User],
        priority: Some(f64::NAN),
        last_modified: Some("yesterday".to_owned()),
    });
    given.icons = vec![
        Icon { src: "javascript:x".to_owned(), mime_type: None, sizes: vec![] },
        Icon {
            src: "https://e.example/i.png".to_owned(),
            mime_type: Some("nonsense".to_owned()),
            sizes: vec!["48x48".to_owned(), "big".to_owned()],
        },
    ];
    given.meta = vec![
        ("e.example/k".to_owned(), "{\"a\":1}".to_owned()),
        ("e.example/k".to_owned(), "2".to_owned()),
        ("belljar/mount".to_owned(), "\"spoof\"".to_owned()),
        ("dev.belljar/mount".to_owned(), "\"spoof\"".to_owned()),
        ("traceparent".to_owned(), "\"x\"".to_owned()),
        ("com.example.mcp/x".to_owned(), "3".to_owned()),
        ("io.modelcontextprotocol/x".to_owned(), "1".to_owned()),
        ("ok".to_owned(), "not json".to_owned()),
        ("deep".to_owned(), "[".repeat(10_000)),
    ];
    let clean = check(given).unwrap();
    assert_eq!(clean.name, "a[31mb ");
    assert_eq!(clean.title.unwrap().chars().count(), 256);
    assert_eq!(clean.description.unwrap().chars().count(), 4096);
    assert_eq!((clean.mime_type, clean.size), (None, None));
    assert_eq!(
        clean.annotations,
        Some(Annotations { audience: vec![Role::User], priority: None, last_modified: None })
    );
    assert_eq!(
        clean.icons,
        [Icon { src: "https://e.example/i.png".to_owned(), mime_type: None, sizes: vec!["48x48".to_owned()] }]
    );
    let kept = [("e.example/k", "{\"a\":1}"), ("com.example.mcp/x", "3")];
    assert_eq!(clean.meta, kept.map(|(key, value)| (key.to_owned(), value.to_owned())));

    let mut nameless = resource("x");
    nameless.name = "\0\u{202e} ".to_owned();
    assert_eq!(check(nameless).unwrap().name, "belljar://a/x");
}

#[test]
fn templates_cannot_reach_other_names() {
    let snapshot = snapshot();
    let template = |t: &str| {
        Template::named(t, "t")
            .check(&ServedMount { mount: &snapshot.mounts()[0], snapshot: &snapshot })
            .map(|t| t.template)
    };
    assert_eq!(template("{+any}").unwrap(), "belljar://a/{+any}");
    assert!(template("{scheme}://{x}").is_err());
    assert!(template("inner/{x}").unwrap_err().to_string().contains("belongs to mount"));
    assert!(template("../{x}").is_err());
}

#[test]
fn sixty_four_pages_hold_a_million_entries() {
    assert_eq!(page_size(0), 1000);
    let total: usize = (0..64).map(page_size).sum();
    assert!(total >= 1_000_000, "{total}");
    assert_eq!(page_size(u32::MAX), MAX_PAGE);
}
