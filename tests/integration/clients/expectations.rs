//! The site to which the clients connect, and the expected reports of the clients.

use std::collections::BTreeSet;

use base64::Engine as _;
use belljar_tests::{Era, Site};
use serde_json::{Value, json};

use crate::clients::programs::Report;

/// The number of notes: enough for several pages with any page size of belljar.
const NOTES: usize = 2_500;

/// The URIs that every client reads. They name text, blobs and a templated resource of the fixture and of real providers, and
/// resources that do not exist.
pub(crate) const READS: &[&str] = &[
    "test://static-text",
    "test://static-binary",
    "test://template/123/data",
    "belljar://clock/utc",
    "belljar://notes/0007.md",
    "belljar://notes/a%20b.md",
    "belljar://notes/bytes.bin",
    "test://nothing-here",
    "belljar://notes/nothing-here.md",
    "belljar://nowhere/nothing-here",
];

/// The configuration. With this `list-time`, a list waits until all mounts are compiled, so the speed of the compiler does not
/// matter.
const CONFIG: &str = r#"
list-time = "60s"

[mounts.fixture]
uri = "test://"

[mounts.notes]
fs = { "/notes" = "notes" }
"#;

/// The fixture's picture of one pixel.
const PIXEL: &[u8] = include_bytes!("../../guests/fixture/src/pixel.png");

/// Bytes that are not UTF-8.
const BYTES: [u8; 4] = [0, 0xff, 0xfe, 0x80];

/// The expected report of one client.
pub(crate) struct Expected {
    /// The name and version of the client, which show that the pinned client ran.
    pub(crate) client: &'static str,
    /// The agreed protocol version. `None` if the client does not report it.
    pub(crate) protocol: Option<&'static str>,
    /// True if the client reports each page of a list.
    pub(crate) walks_pages: bool,
    /// The code of "not found" that the client reports. `None` if it reports none.
    pub(crate) not_found: Option<i64>,
}

/// A site with the fixture at `test://`, the clock, and a directory of notes.
pub(crate) fn site() -> Site {
    let site = crate::support::empty();
    site.mount_as("guest_fixture", "fixture.wasm");
    site.mount("clock");
    site.mount_as("files", "notes.wasm");
    for number in 0..NOTES {
        site.write(format!("notes/{number:04}.md"), note(number));
    }
    site.write("notes/a b.md", "# A and b\n");
    site.write("notes/bytes.bin", BYTES);
    site.config(CONFIG);
    site
}

impl Expected {
    /// The expected report of a client that reports the protocol version, the pages, and the code of "not found".
    pub(crate) fn new(client: &'static str, era: Era) -> Expected {
        Expected { client, protocol: Some(era.version()), walks_pages: true, not_found: Some(era.not_found()) }
    }

    /// The expected report of the Inspector, which reports neither version nor codes nor pages.
    pub(crate) fn inspector() -> Expected {
        Expected { client: "inspector 2.12.0", protocol: None, walks_pages: false, not_found: None }
    }

    /// Compares a report with the served resources.
    pub(crate) fn check(&self, report: &Report) {
        assert_eq!(report.client, self.client);
        if let Some(protocol) = self.protocol {
            assert_eq!(report.protocol, protocol);
        }
        self.check_lists(report);
        for uri in READS {
            let seen = &report.reads[*uri];
            match content(uri) {
                Some(expected) => check_content(uri, &expected, seen),
                None => self.check_not_found(uri, &seen["error"]),
            }
        }
        assert_eq!(report.reads.len(), READS.len());
    }

    /// Compares the listed resources and templates.
    fn check_lists(&self, report: &Report) {
        let uris: Vec<_> = report.resources.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect();
        let unique: BTreeSet<_> = uris.iter().cloned().collect();
        assert_eq!(unique.len(), uris.len(), "a resource is listed twice");
        let expected = listed();
        let missing: Vec<_> = expected.difference(&unique).collect();
        let surplus: Vec<_> = unique.difference(&expected).collect();
        assert!(missing.is_empty() && surplus.is_empty(), "missing {missing:?}, not expected {surplus:?}");
        if self.walks_pages {
            assert!(report.pages > 1, "{} resources came in one page", uris.len());
        }

        let item = |uri: &str| report.resources.iter().find(|item| item["uri"] == uri).unwrap();
        for (uri, name, title, mime_type, size) in [
            ("test://static-text", "static-text", json!("A text resource"), "text/plain", Value::Null),
            ("test://static-binary", "static-binary", json!("A binary resource"), "image/png", json!(PIXEL.len())),
            ("belljar://clock/utc", "utc", json!("Current time (UTC)"), "text/plain", Value::Null),
            ("belljar://notes/0007.md", "0007.md", json!("Note 7"), "text/markdown", json!(note(7).len())),
        ] {
            let seen = item(uri);
            let seen = [&seen["name"], &seen["title"], &seen["mimeType"], &seen["size"]];
            assert_eq!(seen, [&json!(name), &title, &json!(mime_type), &size], "{uri}");
        }

        let templates: BTreeSet<_> =
            report.templates.iter().map(|item| item["uriTemplate"].as_str().unwrap()).collect();
        let expected = [
            "belljar://clock/{+zone}",
            "belljar://notes/{+path}",
            "belljar://notes/{+path}{?lines,bytes}",
            "test://template/{id}/data",
        ];
        assert_eq!(templates, expected.into());
        assert_eq!(report.templates.len(), templates.len(), "a template is listed twice");
    }

    /// Asserts that a read failed because the resource does not exist.
    fn check_not_found(&self, uri: &str, error: &Value) {
        let message = error["message"].as_str().unwrap_or_else(|| panic!("the read of {uri} did not fail"));
        assert!(message.contains("not found"), "{uri}: {message}");
        if let Some(code) = self.not_found {
            assert_eq!(error["code"], code, "{uri}: {error}");
            assert_eq!(error["data"]["uri"], uri, "{uri}: {error}");
        }
    }
}

/// The text of a note.
fn note(number: usize) -> String {
    format!("# Note {number}\n\nThis is note number {number}.\n")
}

/// The URIs of all listed resources.
fn listed() -> BTreeSet<String> {
    let notes = (0..NOTES).map(|number| format!("belljar://notes/{number:04}.md"));
    let others = [
        "belljar://clock/utc",
        "belljar://notes/a%20b.md",
        "belljar://notes/bytes.bin",
        "test://static-binary",
        "test://static-text",
        "test://watched-resource",
    ];
    notes.chain(others.map(str::to_owned)).collect()
}

/// The expected content of a resource. `None` if the resource does not exist. The text of the clock is empty here, because the
/// time changes.
fn content(uri: &str) -> Option<Value> {
    let blob = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let (mime_type, key, value) = match uri {
        "test://static-text" => ("text/plain", "text", "This is the content of the static text resource.".to_owned()),
        "test://static-binary" => ("image/png", "blob", blob(PIXEL)),
        "test://template/123/data" => {
            let data = json!({ "data": "Data for ID: 123", "id": "123", "templateTest": true });
            ("application/json", "text", data.to_string())
        }
        "belljar://clock/utc" => ("text/plain", "text", String::new()),
        "belljar://notes/0007.md" => ("text/markdown", "text", note(7)),
        "belljar://notes/a%20b.md" => ("text/markdown", "text", "# A and b\n".to_owned()),
        "belljar://notes/bytes.bin" => ("application/octet-stream", "blob", blob(&BYTES)),
        _ => return None,
    };
    Some(json!({ "uri": uri, "mimeType": mime_type, key: value }))
}

/// Compares a read with the expected content.
fn check_content(uri: &str, expected: &Value, seen: &Value) {
    let contents = seen["contents"].as_array().unwrap_or_else(|| panic!("{uri} cannot be read: {seen}"));
    let [content] = contents.as_slice() else { panic!("{uri} does not have exactly one content: {seen}") };
    let mut content = content.clone();
    if uri == "belljar://clock/utc" {
        let text = content["text"].take();
        assert!(text.as_str().unwrap().contains("\nzone: UTC\n"), "{text}");
        content["text"] = "".into();
    }
    // Ignore belljar's own metadata about the mount: these tests check the content of the provider.
    let mount = match uri.split_once("://").unwrap() {
        ("test", _) => "fixture",
        (_, rest) => rest.split('/').next().unwrap(),
    };
    let origin = content.as_object_mut().unwrap().remove("_meta").unwrap_or_default();
    assert_eq!(origin["dev.belljar/mount"], mount, "{uri}: {origin}");
    assert_eq!(&content, expected, "{uri}");
}
