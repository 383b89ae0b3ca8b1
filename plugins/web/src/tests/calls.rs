//! Tests of the tool `get`.

use belljar_guest::{BlockBody, Context, Link, Tools as _};

use super::*;

const SETTINGS: &str = r#"
tides = "https://p.example/docs/tides"
photo = "https://p.example/photo.png"
broken = 7
[issue]
url = "https://t.example/api/{project}/issues/{number}{?fields}"
"#;

fn recording() -> Recording {
    let long = format!("<p>{}</p>", "word ".repeat(30_000));
    Recording::new()
        .with("https://p.example/docs/tides", "text/html", "<main><h1>Tides</h1><p>High at <b>four</b>.</p></main>")
        .with("https://p.example/photo.png", "image/png", b"\x89PNG\r\n\x1a\n\0".as_slice())
        .with("https://t.example/api/boats/issues/7", "application/json", r#"{"title":"Leak"}"#)
        .with("https://t.example/api/boats/issues/7?fields=a", "application/json", r#"{"a":1}"#)
        .with("https://t.example/api/long/issues/1", "text/html", long)
        .answer("https://t.example/api/boats/issues/8", 404, &[], "")
}

fn get(recording: &Recording, url: &str) -> Result<(String, Link)> {
    let arguments = serde_json::json!({ "url": url }).to_string();
    let web = recording.web(SETTINGS);
    let result = Web::tools().call(&web, "get", &arguments, &Context::default())?.done().unwrap();
    match result.content.into_iter().map(|block| block.body).collect::<Vec<_>>().as_slice() {
        [BlockBody::Text(text), BlockBody::Link(link)] => Ok((text.clone(), link.clone())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_is_found_by_its_url_or_its_name() {
    let recording = recording();
    for url in ["https://p.example/docs/tides", "tides", "https://p.example/docs/tides#high"] {
        let (text, link) = get(&recording, url).unwrap();
        assert_eq!(text, "# Tides\n\nHigh at **four**.\n", "{url}");
        assert_eq!(link, Link::new("tides").mime_type("text/markdown").size(text.len() as u64), "{url}");
    }
    for (url, reference, part) in [
        ("https://t.example/api/boats/issues/7", "issue/boats/7", "Leak"),
        ("issue/boats/7", "issue/boats/7", "Leak"),
        ("https://t.example/api/boats/issues/7?fields=a", "issue/boats/7?fields=a", "\"a\": 1"),
    ] {
        let (text, link) = get(&recording, url).unwrap();
        assert!(text.contains(part), "{url}: {text}");
        assert_eq!(link.reference, reference);
    }
}

#[test]
fn other_addresses_are_refused_without_a_request() {
    let recording = recording();
    for url in [
        "https://p.example/docs/other",
        "https://evil.example/",
        "https://p.example.evil.example/docs/tides",
        "http://p.example/docs/tides",
        "file:///etc/passwd",
        "https://t.example/api/boats/../../issues/7",
        "none",
        "",
        "broken/..",
    ] {
        let failed = get(&recording, url);
        let is_named = matches!(&failed, Err(Error::Invalid(why)) if why.contains("\"issue/{project}/{number}{?fields}\", \"photo\", \"tides\""));
        assert!(is_named || (url.starts_with("broken") && failed.is_err()), "{url}: {failed:?}");
    }
    assert_eq!(recording.urls(), [""; 0]);
}

#[test]
fn what_is_not_a_short_text_is_described() {
    let recording = recording();
    let (text, link) = get(&recording, "photo").unwrap();
    assert_eq!((text.as_str(), link.size), ("[web: 9 bytes of image/png; the link gives them]\n", Some(9)));
    let (text, _) = get(&recording, "issue/long/1").unwrap();
    assert!(text.len() < 97 * 1024 && text.contains("\n[web: cut, "), "{}", text.len());
    let gone = get(&recording, "issue/boats/8");
    assert!(matches!(&gone, Err(Error::Failed(why)) if why.contains("nothing at \"issue/boats/8\"")), "{gone:?}");
}

#[test]
fn the_definition_is_short() {
    let tools = Web::tools().list();
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    assert!(tool.open_world, "{tool:?}");
    let length = tool.description.len() + tool.input.as_ref().map_or(0, String::len);
    // About 90 tokens.
    assert!(length < 360, "{length}: {tool:?}");
}
