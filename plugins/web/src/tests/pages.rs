//! Tests of pages, JSON and other answers.

use super::*;

const PAGE: &str = include_str!("../../fixtures/page.html");

fn web(content_type: &str, body: impl Into<Vec<u8>>) -> Web {
    Recording::new()
        .with("https://p.example/docs/tides", content_type, body)
        .web("it = \"https://p.example/docs/tides\"")
}

#[test]
fn a_page_reads_as_its_main_text() {
    let text = markdown(&web("text/html; charset=utf-8", PAGE), "it");
    has(
        &text,
        &[
            "# Tide tables\n\nHigh and low water at the [north pier](https://p.example/docs/pier.html#north), see also \
             [elsewhere](https://elsewhere.example/x?a=1&b=2).\n",
            "| Day",
            "| Tuesday | 04:01 | 10:25 |",
            "1. Check the wind\n   - twice\n2. Check the tide\n",
            "```\ntide --port north\n```",
            "![The pier](https://p.example/img/pier.png)",
        ],
    );
    has_not(
        &text,
        &["script", "#123456", "Home", "banner", "Imprint", "hidden", "typed", "Send", "offers", "base64", "Turn", "<"],
    );
}

#[test]
fn a_page_without_a_main_element_is_read() {
    let page = "<title> A\n title </title><base href='https://b.example/x/'><nav>menu</nav><div><article><p>One <a \
                href=y>link</a></article></div><footer>end</footer>";
    assert_eq!(markdown(&web("text/html", page), "it"), "# A title\n\nOne [link](https://b.example/x/y)\n");
    let list = "<article><h2>A</h2></article><article><h2>B</h2></article>";
    assert_eq!(markdown(&web("text/html", list), "it"), "## A\n\n## B\n");
    assert_eq!(markdown(&web("text/html", "just text"), "it"), "just text\n");
    assert_eq!(markdown(&web("text/html", ""), "it"), "");
}

#[test]
fn hostile_html_is_converted() {
    let deep = |tag: &str, n: usize| {
        format!("<p>begin</p>{}deep{}", format!("<{tag}>").repeat(n), format!("</{tag}>").repeat(n))
    };
    for tag in ["div", "blockquote", "ul><li", "table><tr><td", "b", "span", "font", "svg", "select", "math"] {
        let text = markdown(&web("text/html", deep(tag, 5_000)), "it");
        has(&text, &["begin"]);
    }
    has(&markdown(&web("text/html", deep("div", 5_000)), "it"), &["deep"]);
    for odd in [
        "<",
        "<!--",
        "<![CDATA[x]]>",
        "<?php x ?>",
        "</p></p>",
        "<a href='http://['>x</a>",
        "<img>",
        "\0",
        "<table><td>x",
    ] {
        web("text/html", odd).read("it").unwrap_or_else(|error| panic!("{odd}: {error}"));
    }
}

#[test]
fn pages_are_decoded_by_their_charset() {
    let latin = b"<meta charset=iso-8859-1><p>caf\xe9";
    assert_eq!(markdown(&web("text/html", latin.as_slice()), "it"), "café\n");
    let sjis = b"<p>\x93\xfa\x96{";
    assert_eq!(markdown(&web("text/html; charset=Shift_JIS", sjis.as_slice()), "it"), "日本\n");
}

#[test]
fn json_and_selected_values_are_read() {
    let api = include_str!("../../fixtures/api.json");
    let settings = "[users]\nurl = \"https://api.example/users\"\n[first]\nurl = \"https://api.example/users\"\nselect = \
                    \"/data/0/bio\"\n[none]\nurl = \"https://api.example/users\"\nselect = \"/data/2\"";
    // `select` implies JSON, regardless of the MIME type.
    let web = Recording::new().with("https://api.example/users", "application/vnd.api+json", api).web(settings);
    let (all, media) = text(&web, "users");
    assert_eq!(media, "application/json");
    has(&all, &["\"id\": 9007199254740993,\n      \"name\": \"Ann\",\n      \"balance\": 1.10,"]);
    assert_eq!(text(&web, "first"), ("Sails.\nReads.".to_owned(), "text/plain".to_owned()));
    match web.read("none") {
        Err(Error::Failed(why)) => has(&why, &["\"/data/2\"", "\"/data\" it has an array of 2 items"]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_is_unchanged_and_other_bytes_are_blobs() {
    assert_eq!(text(&web("text/plain", "a <b>\n"), "it"), ("a <b>\n".to_owned(), "text/plain".to_owned()));
    assert_eq!(text(&web("text/csv; charset=latin1", b"caf\xe9;1".as_slice()), "it").0, "café;1");
    assert_eq!(text(&web("application/yaml", "a: 1"), "it").1, "application/yaml");
    assert_eq!(text(&web("application/xml", "<a/>"), "it"), ("<a/>".to_owned(), "application/xml".to_owned()));
    assert_eq!(text(&web("image/svg+xml", "<svg/>"), "it").1, "image/svg+xml");
    for media in ["image/png", "application/pdf", "application/octet-stream"] {
        let contents = one(&web(media, b"\x89PNG\0\xff".as_slice()), "it");
        assert_eq!(contents.body, Body::Blob(b"\x89PNG\0\xff".to_vec()), "{media}");
        assert_eq!(contents.mime_type.as_deref(), Some(media));
    }
    let kind = "[it]\nurl = \"https://p.example/x\"\nkind = \"raw\"";
    let raw = Recording::new().with("https://p.example/x", "text/html", "<p>x").web(kind);
    assert_eq!(text(&raw, "it"), ("<p>x".to_owned(), "text/html".to_owned()));
}
